//! Limits on requests, and the headers of every response.

use annals_console::serve::serve;
use axum::http::StatusCode;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::{
    archive::{Console, Signed},
    visitor::Visitor,
};

#[tokio::test]
async fn every_response_has_restrictive_headers() {
    let signed = Signed::play(500, 120).await;
    let console = Console::over(&signed.game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let mut nobody = Visitor::new(&console);
    let trade = signed.game.deals[0].id;
    for address in [
        "/",
        "/search?q=gandalf",
        "/item/1",
        "/item/x",
        "/account/100",
        "/entity/1000",
        "/verification",
        "/nowhere",
        "/login",
        "/style.css",
        "/item/1/bundle",
        &format!("/trade/{trade}"),
    ] {
        for shown in [iris.get(address).await, nobody.get(address).await] {
            let policy = shown.header("content-security-policy");
            assert!(
                policy.starts_with("default-src 'none'; style-src 'self'; ") && !policy.contains("unsafe"),
                "{address}"
            );
            assert_eq!(shown.header("x-content-type-options"), "nosniff", "{address}");
            assert_eq!(shown.header("referrer-policy"), "no-referrer", "{address}");
            assert_eq!(shown.header("x-frame-options"), "DENY", "{address}");
            if address != "/style.css" {
                assert_eq!(shown.header("cache-control"), "no-store", "{address}");
            }
            let is_page = shown.header("content-type").starts_with("text/html");
            if is_page {
                let html = shown.html();
                for outside in ["<script", "style=", "http://", "https://", "javascript:", "src="] {
                    assert!(!html.contains(outside), "{address}: {outside}");
                }
                for needed in [
                    "lang=\"en\"",
                    "class=\"skip\" href=\"#main\"",
                    "<main id=\"main\"",
                    "<header",
                    "<footer",
                    "<h1",
                ] {
                    assert!(html.contains(needed), "{address}: {needed}");
                }
                let tables = html.matches("<table").count();
                assert!(
                    html.matches("scope=\"col\"").count() >= 2 * tables,
                    "{address}: columns have headings"
                );
                let inputs = html.matches("<input id=").count() + html.matches("<textarea id=").count();
                assert!(
                    html.matches("<label").count() >= inputs,
                    "{address}: fields have labels"
                );
            }
        }
    }
}

#[tokio::test]
async fn overlong_requests_are_refused() {
    let signed = Signed::play(510, 60).await;
    let console = Console::over(&signed.game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let long = iris.get(&format!("/search?q={}", "x".repeat(301))).await;
    assert_eq!(long.status, StatusCode::BAD_REQUEST);
    let form = iris.get("/verification").await.field("form");
    for (bytes, kind) in [
        (70 << 10, "longer than any checkpoint"),
        (300 << 10, "longer than any form"),
    ] {
        let shown = iris.give("/verification", &form, ("pasted", &"x".repeat(bytes))).await;
        assert!(shown.status.is_client_error(), "{kind}: {}", shown.status);
    }
    let mut eve = Visitor::new(&console);
    let shown = eve.log_in(&"x".repeat(65), "a wrong password").await;
    assert_eq!(shown.status, StatusCode::UNPROCESSABLE_ENTITY);
    let shown = eve.log_in("iris", &"x".repeat(1_025)).await;
    assert_eq!(shown.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_socket_serves_pages_until_shutdown() {
    let signed = Signed::play(520, 60).await;
    let console = Console::over(&signed.game.store).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (stop, stops) = watch::channel(false);
    let address = listener.local_addr().expect("bound");
    let serving = tokio::spawn(serve(listener, console.site.clone(), stops));
    let ask = async |bytes: &[u8]| {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(bytes).await.expect("written");
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said).await;
        String::from_utf8_lossy(&said).into_owned()
    };
    let page = ask(b"GET /login HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("Log in"), "{page}");
    let long = format!(
        "GET /search?q={} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "x".repeat(3_000)
    );
    assert!(ask(long.as_bytes()).await.starts_with("HTTP/1.1 414 "));
    let longer = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(64 << 10));
    let refused = ask(longer.as_bytes()).await;
    assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 431 "), "{refused}");
    assert!(ask(b"hello\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
    stop.send_replace(true);
    serving.await.expect("it does not panic").expect("it ends in order");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}
