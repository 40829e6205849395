//! Access control by role.

use annals_console::{
    people::{People, Role, hash_of},
    views::ViewLog,
};
use annals_host::passwords::Passwords;
use annals_ids::WallTime;
use annals_login::GUESSES;
use axum::http::StatusCode;

use crate::{
    archive::{Console, PASSWORD, Signed},
    visitor::Visitor,
};

/// Pages for auditors only.
const GUARDED: &[&str] = &[
    "/",
    "/search?q=1",
    "/trade/1000/1",
    "/trade/1000/1/bundle",
    "/trade/1000/1/receipt",
    "/item/1",
    "/item/1/bundle",
    "/account/100",
    "/account/100/bundle",
    "/entity/1000",
    "/session/10000",
    "/case/1",
    "/verification",
];

async fn console() -> Console {
    let signed = Signed::play(1, 60).await;
    Console::over(&signed.game.store).await
}

#[tokio::test]
async fn nothing_is_shown_without_a_log_in() {
    let console = console().await;
    let mut nobody = Visitor::new(&console);
    for address in GUARDED {
        let shown = nobody.get(address).await;
        assert_eq!(shown.status, StatusCode::SEE_OTHER, "{address}");
        assert!(shown.header("location").starts_with("/login?next=%2F"), "{address}");
        assert!(shown.bytes.is_empty(), "{address}");
    }
    nobody.cookies.push(("annals-session".to_owned(), "0".repeat(64)));
    assert_eq!(nobody.get("/item/1").await.status, StatusCode::SEE_OTHER);
    assert_eq!(console.views(), [], "nothing was looked at");
}

#[tokio::test]
async fn a_log_in_redirects_to_the_requested_page() {
    let console = console().await;
    let mut iris = Visitor::new(&console);
    let shown = iris.log_in("iris", PASSWORD).await;
    assert_eq!(
        (shown.status, shown.header("location")),
        (StatusCode::SEE_OTHER, "/item/1")
    );
    let session = shown
        .headers
        .get_all("set-cookie")
        .iter()
        .map(|set| set.to_str().expect("text"));
    let session: Vec<&str> = session.filter(|set| set.starts_with("annals-session=")).collect();
    assert!(
        session.len() == 1 && session[0].ends_with("; Path=/; HttpOnly; SameSite=Strict"),
        "{session:?}"
    );
    for address in GUARDED {
        let shown = iris.get(address).await;
        assert!(!shown.header("location").starts_with("/login"), "{address}");
        assert_ne!(shown.status, StatusCode::FORBIDDEN, "{address}");
    }
    let form = iris.get("/").await.field("form");
    let out = iris
        .post("/logout", "application/x-www-form-urlencoded", b"form=other".to_vec())
        .await;
    assert_eq!(out.header("location"), "/", "another site cannot log anybody out");
    let old = iris.clone();
    let out = format!("form={form}").into_bytes();
    let out = iris.post("/logout", "application/x-www-form-urlencoded", out).await;
    assert_eq!(out.header("location"), "/login");
    for mut left in [iris, old] {
        assert_eq!(
            left.get("/item/1").await.status,
            StatusCode::SEE_OTHER,
            "the session is no more"
        );
    }
}

#[tokio::test]
async fn password_guesses_are_limited() {
    let console = console().await;
    let mut eve = Visitor::new(&console);
    for name in ["iris", "nobody"] {
        let shown = eve.log_in(name, "a wrong password").await;
        assert_eq!(shown.status, StatusCode::UNAUTHORIZED);
        assert!(shown.text().contains("Name or password is wrong."), "alike for {name}");
    }
    for guess in 2..GUESSES {
        let status = eve.log_in("iris", "a wrong password").await.status;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "guess {guess}");
    }
    let right = eve.log_in("iris", PASSWORD).await;
    assert_eq!(right.status, StatusCode::TOO_MANY_REQUESTS, "even if it is right");
    assert_eq!(console.views(), []);
}

#[tokio::test]
async fn cross_site_log_in_forms_are_rejected() {
    let console = console().await;
    let mut iris = Visitor::new(&console);
    let form = iris.get("/login").await.field("form");
    let body = format!("name=iris&password={}&form={form}", PASSWORD.replace(' ', "+"));
    for (mut other, body) in [
        (Visitor::new(&console), body.clone()),
        (iris.clone(), body.replace(&form, &"0".repeat(64))),
        (iris.clone(), body.replace(&form, "")),
    ] {
        let kind = "application/x-www-form-urlencoded";
        let shown = other.post("/login", kind, body.into_bytes()).await;
        assert_eq!(shown.status, StatusCode::FORBIDDEN);
    }
    let kind = "application/x-www-form-urlencoded";
    let shown = iris.post("/login", kind, body.into_bytes()).await;
    assert_eq!(shown.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn operators_see_no_player_actions() {
    let console = console().await;
    let mut otto = Visitor::named(&console, "otto").await;
    for address in GUARDED {
        let shown = otto.get(address).await;
        assert_eq!(shown.status, StatusCode::FORBIDDEN, "{address}");
        assert!(shown.text().contains("You are logged in as operator."), "{address}");
    }
    let views = console.views();
    assert_eq!(views.len(), 1 + GUARDED.len(), "that they tried is written down");
    // People without the role can log out as well.
    let form = otto.get("/").await.field("form");
    let old = otto.clone();
    let kind = "application/x-www-form-urlencoded";
    let kept = otto.post("/logout", kind, b"form=other".to_vec()).await;
    assert_eq!(kept.header("location"), "/", "another site cannot log them out");
    let out = otto.post("/logout", kind, format!("form={form}").into_bytes()).await;
    assert_eq!((out.status, out.header("location")), (StatusCode::SEE_OTHER, "/login"));
    for mut left in [otto, old] {
        let shown = left.get("/item/1").await;
        assert_eq!(shown.status, StatusCode::SEE_OTHER, "the session is no more");
    }
    let last = console.views().pop().expect("views");
    assert_eq!((last.who.as_str(), last.what.as_str()), ("otto", "POST /logout"));
}

#[tokio::test]
async fn removed_and_changed_users_are_logged_out() {
    let console = console().await;
    for change in [true, false] {
        let mut iris = Visitor::named(&console, "iris").await;
        assert_eq!(iris.get("/").await.status, StatusCode::OK);
        let mut people = People::read(&console.people()).expect("read");
        people.remove("iris").expect("there");
        if change {
            people.add("iris", Role::Auditor, PASSWORD).expect("new");
        }
        people.write(&console.people()).expect("written");
        assert_eq!(iris.get("/").await.status, StatusCode::SEE_OTHER);
    }
    let mut iris = Visitor::new(&console);
    assert_eq!(iris.log_in("iris", PASSWORD).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn nothing_is_shown_if_the_access_log_cannot_be_written() {
    let signed = Signed::play(1, 60).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("views.log");
    // `/dev/null` keeps no data, and syncing it fails.
    let nowhere = ViewLog::open(std::path::Path::new("/dev/null"), WallTime(0)).expect("it can be opened");
    let console = Console::writing(&signed.game.store, folder, nowhere).await;
    let mut iris = Visitor::new(&console);
    let shown = iris.log_in("iris", PASSWORD).await;
    assert_eq!(shown.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(shown.text().contains("Nothing can be shown"));
    assert_eq!(
        iris.get("/item/1").await.status,
        StatusCode::SEE_OTHER,
        "not logged in either"
    );
    assert!(!file.exists());
}

#[tokio::test]
async fn only_the_configured_passwords_are_accepted() {
    let mut people = People::default();
    people.add("iris", Role::Auditor, PASSWORD).expect("new");
    let (passwords, iris) = (Passwords::default(), people.named("iris"));
    for (person, password, expected) in [
        (iris, PASSWORD, true),
        (iris, "correct horse batterx", false),
        (None, PASSWORD, false),
    ] {
        let fits = passwords.fits(password.to_owned(), hash_of(person).to_owned()).await;
        assert_eq!(fits.expect("it is compared"), expected, "{password}");
    }
    for (name, password) in [
        ("iris", PASSWORD),
        ("", PASSWORD),
        ("a b", PASSWORD),
        ("ida", "too short"),
    ] {
        assert!(people.add(name, Role::Auditor, password).is_err(), "{name:?}");
    }
}
