//! A minimal browser for these tests.

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Method, Request, StatusCode, header},
};
use tower::ServiceExt;

use crate::archive::{Console, PASSWORD};

/// Maximum bytes read of a response.
const MOST: usize = 64 << 20;

/// A response.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Shown {
    pub(crate) fn html(&self) -> &str {
        std::str::from_utf8(&self.bytes).expect("pages are text")
    }

    /// The visible text, without markup.
    pub(crate) fn text(&self) -> String {
        let (mut text, mut is_tag) = (String::new(), false);
        for c in self.html().chars() {
            match c {
                '<' => is_tag = true,
                '>' => is_tag = false,
                c if !is_tag => text.push(c),
                _ => {}
            }
        }
        let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
        named.iter().fold(text, |text, (name, c)| text.replace(name, c))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// Value of a hidden field.
    pub(crate) fn field(&self, name: &str) -> String {
        let begin = format!("name=\"{name}\" value=\"");
        let rest = self.html().split_once(&begin).expect("the field is there").1;
        rest.split_once('"').expect("it ends").0.to_owned()
    }
}

/// A browser with its cookies.
#[derive(Clone)]
pub(crate) struct Visitor {
    site: Router,
    pub(crate) cookies: Vec<(String, String)>,
}

impl Visitor {
    pub(crate) fn new(console: &Console) -> Self {
        Self {
            site: console.site.clone(),
            cookies: Vec::new(),
        }
    }

    /// A visitor who has logged in.
    pub(crate) async fn named(console: &Console, name: &str) -> Self {
        let mut visitor = Self::new(console);
        let shown = visitor.log_in(name, PASSWORD).await;
        assert_eq!(shown.status, StatusCode::SEE_OTHER, "{}", shown.html());
        visitor
    }

    pub(crate) async fn log_in(&mut self, name: &str, password: &str) -> Shown {
        let form = self.get("/login?next=/item/1").await.field("form");
        let body = format!(
            "name={name}&password={}&form={form}&next=/item/1",
            password.replace(' ', "+")
        );
        self.post("/login", "application/x-www-form-urlencoded", body.into_bytes())
            .await
    }

    pub(crate) async fn get(&mut self, address: &str) -> Shown {
        self.send(Request::get(address).body(Body::empty()).expect("a request"))
            .await
    }

    pub(crate) async fn post(&mut self, address: &str, kind: &str, body: Vec<u8>) -> Shown {
        let request = Request::builder().method(Method::POST).uri(address);
        let request = request.header(header::CONTENT_TYPE, kind).body(Body::from(body));
        self.send(request.expect("a request")).await
    }

    /// Sends a form that contains a checkpoint.
    pub(crate) async fn give(&mut self, address: &str, form: &str, (field, checkpoint): (&str, &str)) -> Shown {
        let part = |name: &str, value: &str| {
            format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let body = format!("{}{}--edge--\r\n", part("form", form), part(field, checkpoint));
        self.post(address, "multipart/form-data; boundary=edge", body.into_bytes())
            .await
    }

    async fn send(&mut self, mut request: Request<Body>) -> Shown {
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if !cookies.is_empty() {
            let value = cookies.join("; ").parse().expect("cookies");
            request.headers_mut().insert(header::COOKIE, value);
        }
        let response = self.site.clone().oneshot(request).await.expect("it answers");
        let (parts, body) = response.into_parts();
        for set in parts.headers.get_all(header::SET_COOKIE) {
            let set = set.to_str().expect("text");
            let (name, rest) = set.split_once('=').expect("a cookie");
            let value = rest.split(';').next().expect("a value");
            self.cookies.retain(|(held, _)| held != name);
            if !value.is_empty() {
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
        Shown {
            status: parts.status,
            headers: parts.headers,
            bytes: to_bytes(body, MOST).await.expect("a body").to_vec(),
        }
    }
}
