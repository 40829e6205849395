//! Handlers for bundles, receipts and the verification page.

use std::sync::Arc;

use annals_evidence::Question;
use annals_ids::{DatabaseId, Serial};
use annals_proof::SignedNote;
use axum::{
    Extension,
    extract::{Multipart, Path, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use super::{
    NO_NUMBER, Site,
    answers::{NO_TRADE, read_trade},
    refused, unclear,
};
use crate::{
    access::Visitor,
    casework::{NOTE_BYTES, NoAnswer},
    pages::{Page, verification as page},
    sessions::same,
};

type At = State<Arc<Site>>;
type By = Extension<Visitor>;

pub(super) async fn trade(
    State(site): At,
    Extension(visitor): By,
    Path((entity, number)): Path<(String, String)>,
) -> Response {
    match read_trade(&entity, &number) {
        Some(id) => bundle(&site, &visitor, Question::Trade(id), None).await,
        None => unclear(&visitor, NO_TRADE),
    }
}

pub(super) async fn trade_kept(
    State(site): At,
    Extension(visitor): By,
    Path((entity, number)): Path<(String, String)>,
    sent: Multipart,
) -> Response {
    match read_trade(&entity, &number) {
        Some(id) => bundle(&site, &visitor, Question::Trade(id), Some(sent)).await,
        None => unclear(&visitor, NO_TRADE),
    }
}

pub(super) async fn item(State(site): At, Extension(visitor): By, Path(serial): Path<String>) -> Response {
    match serial.parse() {
        Ok(serial) => bundle(&site, &visitor, Question::Item(Serial(serial)), None).await,
        Err(_) => unclear(&visitor, NO_NUMBER),
    }
}

pub(super) async fn item_kept(
    State(site): At,
    Extension(visitor): By,
    Path(serial): Path<String>,
    sent: Multipart,
) -> Response {
    match serial.parse() {
        Ok(serial) => bundle(&site, &visitor, Question::Item(Serial(serial)), Some(sent)).await,
        Err(_) => unclear(&visitor, NO_NUMBER),
    }
}

pub(super) async fn account(State(site): At, Extension(visitor): By, Path(number): Path<String>) -> Response {
    match number.parse() {
        Ok(number) => bundle(&site, &visitor, Question::Account(DatabaseId(number)), None).await,
        Err(_) => unclear(&visitor, NO_NUMBER),
    }
}

pub(super) async fn account_kept(
    State(site): At,
    Extension(visitor): By,
    Path(number): Path<String>,
    sent: Multipart,
) -> Response {
    match number.parse() {
        Ok(number) => bundle(&site, &visitor, Question::Account(DatabaseId(number)), Some(sent)).await,
        Err(_) => unclear(&visitor, NO_NUMBER),
    }
}

pub(super) async fn receipt(
    State(site): At,
    Extension(visitor): By,
    Path((entity, number)): Path<(String, String)>,
) -> Response {
    let Some(id) = read_trade(&entity, &number) else {
        return unclear(&visitor, NO_TRADE);
    };
    match site.casework.receipt(id).await {
        Ok(receipt) => file(
            "text/plain; charset=utf-8",
            &format!("receipt-{entity}-{number}.txt"),
            receipt.into_bytes(),
        ),
        Err(why) => refused(&visitor, &why),
    }
}

pub(super) async fn verification(State(site): At, Extension(visitor): By) -> Response {
    verify(&site, &visitor, None).await
}

pub(super) async fn verification_kept(State(site): At, Extension(visitor): By, sent: Multipart) -> Response {
    match checkpoint(&visitor, sent).await {
        Ok(kept) => verify(&site, &visitor, Some(kept)).await,
        Err(why) => refused(&visitor, &why),
    }
}

async fn verify(site: &Site, visitor: &Visitor, kept: Option<Vec<u8>>) -> Response {
    match site.casework.verification(kept).await {
        Ok(answered) => {
            let title = Page::new("Verification", Some(visitor)).resting(&answered);
            title.show(StatusCode::OK, &page::page(&answered.answer, &visitor.form))
        }
        Err(why) => refused(visitor, &why),
    }
}

async fn bundle(site: &Site, visitor: &Visitor, question: Question, sent: Option<Multipart>) -> Response {
    let kept = match sent {
        None => Ok(Vec::new()),
        Some(sent) => checkpoint(visitor, sent).await.and_then(|bytes| {
            let note = SignedNote::parse(&bytes);
            let note = note.map_err(|error| NoAnswer::Unclear(format!("That is no checkpoint: {error}.")));
            Ok(vec![note?])
        }),
    };
    let made = match kept {
        Ok(kept) => site.casework.bundle(question, kept).await,
        Err(why) => Err(why),
    };
    match made {
        Ok(bundle) => {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let name: String = question.to_string().chars().map(plain).collect();
            file("application/zip", &format!("{name}.zip"), bundle)
        }
        Err(why) => refused(visitor, &why),
    }
}

/// Checkpoint from a form: the uploaded file if there is one, else the pasted text.
async fn checkpoint(visitor: &Visitor, mut sent: Multipart) -> Result<Vec<u8>, NoAnswer> {
    let (mut chosen, mut is_ours) = (Vec::new(), false);
    let unread = |error: axum::extract::multipart::MultipartError| NoAnswer::Unclear(error.body_text());
    while let Some(field) = sent.next_field().await.map_err(unread)? {
        let name = field.name().unwrap_or_default().to_owned();
        let bytes = field.bytes().await.map_err(unread)?;
        match name.as_str() {
            "form" => is_ours = std::str::from_utf8(&bytes).is_ok_and(|form| same(form, &visitor.form)),
            "file" if !bytes.is_empty() => chosen = bytes.to_vec(),
            "pasted" if chosen.is_empty() => chosen = as_written(&bytes),
            _ => {}
        }
    }
    if !is_ours {
        return Err(NoAnswer::Unclear(
            "This form was too old, or not from here. Load the page again.".into(),
        ));
    }
    if chosen.is_empty() || chosen.len() > NOTE_BYTES {
        return Err(NoAnswer::Unclear(
            "Choose the file of a checkpoint that was kept, or paste its text.".into(),
        ));
    }
    Ok(chosen)
}

/// Pasted text with the line ends of a note: browsers send CR LF, and people omit the last line end.
fn as_written(pasted: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(pasted).replace("\r\n", "\n");
    match text.trim() {
        "" => Vec::new(),
        text => format!("{text}\n").into_bytes(),
    }
}

fn file(kind: &'static str, name: &str, bytes: Vec<u8>) -> Response {
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Ok(disposition) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}
