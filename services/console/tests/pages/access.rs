//! Access control by role.

use annals_console::{
    links::Links,
    people::{People, Role, hash_of},
    sessions::Token,
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
    "/search?q=1",
    "/trade/1000/1",
    "/trade/1000/1/bundle",
    "/trade/1000/1/receipt",
    "/item/1",
    "/item/1/bundle",
    "/account/100",
    "/account/100/bundle",
    "/session/10000",
    "/case/1",
    "/verification",
];

/// Pages for operators only.
const OPERATED: &[&str] = &[
    "/map",
    "/map/1",
    "/map/1/events",
    "/processes",
    "/processes/events",
    "/logs",
    "/logs/events",
    "/entity?number=1000",
];

/// Pages for both.
const SHARED: &[&str] = &["/", "/entity/1000"];

async fn console() -> Console {
    let signed = Signed::play(1, 60).await;
    Console::over(&signed.game.store).await
}

#[tokio::test]
async fn nothing_is_shown_without_a_log_in() {
    let console = console().await;
    let mut nobody = Visitor::new(&console);
    for address in [GUARDED, OPERATED, SHARED].concat() {
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
    for address in [GUARDED, SHARED].concat() {
        let shown = iris.get(address).await;
        assert!(!shown.header("location").starts_with("/login"), "{address}");
        assert_ne!(shown.status, StatusCode::FORBIDDEN, "{address}");
        let policy = shown.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; style-src 'self'"),
            "{address}: no script"
        );
    }
    for address in OPERATED {
        let shown = iris.get(address).await;
        assert_eq!(shown.status, StatusCode::FORBIDDEN, "{address}");
        assert!(shown.text().contains("You are logged in as auditor."), "{address}");
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
    // They begin with the map of a live realm, which this is not.
    assert_eq!(otto.get("/").await.header("location"), "/map");
    for address in ["/map", "/map/1", "/map/1/events", "/processes", "/logs"] {
        let shown = otto.get(address).await;
        assert_eq!(shown.status, StatusCode::NOT_FOUND, "{address}");
        assert!(shown.text().contains("No live realm"), "{address}");
    }
    assert_eq!(otto.get("/entity?number=+7").await.header("location"), "/entity/7");
    assert_eq!(otto.get("/entity?number=x").await.status, StatusCode::BAD_REQUEST);
    // People of either role can log out.
    let form = otto.get("/map").await.field("form");
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

#[tokio::test]
async fn operators_see_entities_but_not_their_players() {
    let console = console().await;
    let mut iris = Visitor::named(&console, "iris").await;
    let mut otto = Visitor::named(&console, "otto").await;
    let (full, part) = (iris.get("/entity/1000").await, otto.get("/entity/1000").await);
    assert_eq!(
        (full.status, part.status),
        (StatusCode::OK, StatusCode::OK),
        "{}",
        part.text()
    );
    for link in ["href=\"/session/", "href=\"/account/"] {
        assert!(full.html().contains(link) && !part.html().contains(link), "{link}");
    }
    assert!(part.text().contains("client session "), "{}", part.text());
    assert!(
        part.header("content-security-policy")
            .contains("script-src 'self'; connect-src 'self'")
    );
    assert!(part.html().contains("<script src=\"/moment.js\" defer></script>"));
    let script = otto.get("/moment.js").await;
    assert_eq!(script.header("content-type"), "text/javascript; charset=utf-8");
    // The slider: from before the first event to after the last one.
    let count = part
        .html()
        .split_once("max=\"")
        .and_then(|(_, rest)| rest.split_once('"'));
    let count: usize = count.and_then(|(count, _)| count.parse().ok()).expect("a slider");
    let at = |visitor: &mut Visitor, events: usize| {
        let mut visitor = visitor.clone();
        async move { visitor.get(&format!("/entity/1000?event={events}")).await }
    };
    let before = at(&mut otto, 0).await;
    assert!(
        before.text().contains("Nothing of it existed at that moment."),
        "{}",
        before.text()
    );
    let last = at(&mut otto, count).await;
    assert!(last.text().contains(&format!("After {count} of ")), "{}", last.text());
    assert_eq!(at(&mut otto, count + 1).await.status, StatusCode::OK);
    let views = console.views();
    assert!(views.iter().any(|view| view.what == "GET /entity/1000?event=0"));
}

#[tokio::test]
async fn a_sign_in_link_works_once() {
    let console = console().await;
    let token = Token::new([3; 32]);
    let links = Links::of(console.folder.path());
    let now = annals_host::clock::wall();
    links.make(now, "otto", &token).expect("made");
    let path = format!("/enter/{}", token.text());
    let mut otto = Visitor::new(&console);
    let page = otto.get(&path).await;
    assert_eq!(page.status, StatusCode::OK);
    // Programs that look ahead follow the link, and do not use it up.
    assert_eq!(otto.get(&path).await.status, StatusCode::OK);
    let kind = "application/x-www-form-urlencoded";
    let forged = format!("token={}&form={}", token.text(), "0".repeat(64));
    let shown = otto.post("/enter", kind, forged.into_bytes()).await;
    assert_eq!(shown.status, StatusCode::FORBIDDEN, "a form of another site");
    let form = otto.get(&path).await.field("form");
    let sent = format!("token={}&form={form}", token.text()).into_bytes();
    let shown = otto.post("/enter", kind, sent.clone()).await;
    assert_eq!((shown.status, shown.header("location")), (StatusCode::SEE_OTHER, "/"));
    assert_eq!(otto.get("/").await.header("location"), "/map");
    let mut eve = Visitor::new(&console);
    let form = eve.get(&path).await.field("form");
    for token in [token.text(), Token::new([4; 32]).text(), "../people.toml"] {
        let sent = format!("token={}&form={form}", token.replace('/', "%2F"));
        let mut eve = eve.clone();
        let shown = eve.post("/enter", kind, sent.into_bytes()).await;
        assert_eq!(shown.status, StatusCode::UNAUTHORIZED, "{token}");
    }
    let views = console.views();
    let entered = views.iter().filter(|view| view.what == "logged in by link").count();
    assert_eq!(entered, 1);
    assert!(
        !format!("{views:?}").contains(token.text()),
        "the token is not recorded"
    );
    // A link of a person who was removed logs nobody in.
    let token = Token::new([5; 32]);
    links.make(now, "otto", &token).expect("made");
    let mut people = People::read(&console.people()).expect("read");
    people.remove("otto").expect("there");
    people.write(&console.people()).expect("written");
    let sent = format!("token={}&form={form}", token.text()).into_bytes();
    assert_eq!(eve.post("/enter", kind, sent).await.status, StatusCode::UNAUTHORIZED);
}
