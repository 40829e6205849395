//! Decodes bytes to text. Files should be UTF-8; older encodings are decoded where they are certain.

use std::borrow::Cow;

use encoding_rs::{Encoding, GB18030, UTF_16BE, UTF_16LE};

use super::Span;
use crate::diagnostic::{Finding, Findings, Rule};

/// Bytes at the start of a file in which an encoding declaration is searched.
const DECLARATION_BYTES: usize = 256;

/// The text of a file without its byte order mark; `None` and a finding if it cannot be decoded.
pub(super) fn decode<'t>(bytes: &'t [u8], whole: Span, findings: &mut Findings) -> Option<Cow<'t, str>> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes)
        && [UTF_16LE, UTF_16BE].contains(&encoding)
    {
        return decode_as(encoding, &bytes[mark..], whole, findings);
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return Some(Cow::Borrowed(text)),
        Err(error) => error,
    };
    if let Some(encoding) = declared(bytes).or_else(|| is_gb18030(bytes).then_some(GB18030)) {
        return decode_as(encoding, bytes, whole, findings);
    }
    let at = error.valid_up_to();
    let line = bytes[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
    findings.push(
        Finding::new(
            Rule::Encoding,
            whole,
            format!(
                "the file is not UTF-8: byte {:#04x} in line {line} does not begin a character",
                bytes[at]
            ),
        )
        .help("save the file as UTF-8, or declare its encoding: `<?xml version=\"1.0\" encoding=\"…\"?>`"),
    );
    None
}

fn decode_as<'t>(
    encoding: &'static Encoding,
    bytes: &'t [u8],
    whole: Span,
    findings: &mut Findings,
) -> Option<Cow<'t, str>> {
    let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(bytes) else {
        let message = format!("the file is neither UTF-8 nor {}", encoding.name());
        findings.push(Finding::new(Rule::Encoding, whole, message).help("save the file as UTF-8"));
        return None;
    };
    let message = format!("the file is read as {}", encoding.name());
    findings.push(Finding::new(Rule::ForeignEncoding, whole, message).help("save the file as UTF-8"));
    Some(text)
}

/// The encoding that an XML declaration names, if it is a known one other than UTF-8.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(DECLARATION_BYTES)];
    let start = String::from_utf8_lossy(start);
    let (declaration, _) = start.trim_start().strip_prefix("<?xml")?.split_once("?>")?;
    let (_, rest) = declaration.split_once("encoding")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    let label = rest[1..].split(quote).next()?;
    Encoding::for_label(label.as_bytes()).filter(|encoding| *encoding != encoding_rs::UTF_8)
}

/// Whether the bytes are text in GB18030, the encoding of most undeclared files of Chinese games.
fn is_gb18030(bytes: &[u8]) -> bool {
    GB18030
        .decode_without_bom_handling_and_without_replacement(bytes)
        .is_some_and(|text| text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace()))
}
