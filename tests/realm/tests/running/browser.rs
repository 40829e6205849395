//! A headless Chromium, driven by the WebDriver protocol (<https://www.w3.org/TR/webdriver2/>).

use std::{
    io::{self, Read, Write},
    net,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use annals_realm::Folder;

use base64ct::{Base64, Encoding};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};

use crate::played::within;

pub(crate) const ENTER: char = '\u{e007}';

/// Timeout of every browser action.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How often a driver is started until it has a port.
const DRIVER_STARTS: u32 = 3;

/// The protocol's key for an element reference.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Set where a browser is required: no test is skipped there.
const REQUIRED: &str = "ANNALS_TEST_BROWSER_REQUIRED";

/// Window widths at which pages are checked, pixels.
const WIDTHS: [u32; 2] = [1280, 390];

/// A browser session.
pub(crate) struct Browser {
    /// Killed after the session has ended.
    _driver: Child,
    port: u16,
    session: String,
    folder: Folder,
    /// Folder of screenshots.
    pictures: PathBuf,
}

/// How a browser treats certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certificates {
    Checked,
    /// As if its user had accepted each.
    AnyAccepted,
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("a browser is left running: {error}");
        }
    }
}

/// Whether a browser is installed; prints a message if not.
pub(crate) fn is_installed() -> bool {
    let found = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    let is_installed = found("chromium") && found("chromedriver");
    if !is_installed {
        let said = "there is no chromium and chromedriver on PATH; `make setup` installs them on Debian";
        assert!(std::env::var_os(REQUIRED).is_none(), "{said}");
        println!("SKIPPED: {said}");
    }
    is_installed
}

/// Starts a driver; also returns its port. `None` if it ends at once: another process has taken the port that it chose, as
/// it listens on that port in both families of addresses, one after the other.
async fn start_driver() -> Option<(Child, u16)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("chromedriver starts");
    let mut lines = BufReader::new(driver.stdout.take().expect("piped")).lines();
    while let Some(line) = lines.next_line().await.expect("it can be read") {
        let port = line.strip_suffix('.').and_then(|line| line.rsplit_once("on port "));
        if let Some(port) = port.and_then(|(_, port)| port.parse().ok()) {
            return Some((driver, port));
        }
    }
    None
}

impl Browser {
    /// Starts a session.
    pub(crate) async fn start() -> Self {
        Self::start_with(Certificates::Checked).await
    }

    /// Starts a session with this handling of certificates.
    pub(crate) async fn start_with(certificates: Certificates) -> Self {
        let folder = Folder::create();
        let mut started = None;
        for _ in 0..DRIVER_STARTS {
            started = within(TIMEOUT, "chromedriver", start_driver()).await;
            if started.is_some() {
                break;
            }
        }
        let (driver, port) = started.expect("chromedriver finds a free port");
        let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("console");
        std::fs::create_dir_all(&pictures).expect("a folder for pictures");
        let mut browser = Self {
            _driver: driver,
            port,
            session: String::new(),
            folder,
            pictures,
        };
        let arguments = [
            "--headless".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            format!("--user-data-dir={}", browser.folder.path().join("profile").display()),
        ];
        let options = json!({
            "args": arguments,
            "prefs": { "download.default_directory": browser.folder.path().join("downloads") },
        });
        let wanted = json!({
            "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL" },
            "acceptInsecureCerts": certificates == Certificates::AnyAccepted,
        });
        let begun = browser
            .call(
                "POST",
                "/session",
                &json!({ "capabilities": { "alwaysMatch": wanted } }),
            )
            .await;
        browser.session = format!("/session/{}", begun["sessionId"].as_str().expect("a session"));
        browser
    }

    /// Ends the session, and with it the browser: a driver that is killed leaves its browser running.
    fn end(&self) -> io::Result<()> {
        let mut stream = net::TcpStream::connect((net::Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        write!(stream, "DELETE {} HTTP/1.1\r\nHost: localhost\r\n\r\n", self.session)?;
        stream.read_exact(&mut [0])
    }

    /// Opens an address.
    pub(crate) async fn open(&self, address: &str) {
        self.order("POST", "/url", &json!({ "url": address })).await;
    }

    /// Goes back in the history.
    pub(crate) async fn back(&self) {
        self.order("POST", "/back", &json!({})).await;
    }

    /// The current address.
    pub(crate) async fn address(&self) -> String {
        let address = self.order("GET", "/url", &Value::Null).await;
        address.as_str().expect("an address").to_owned()
    }

    /// Visible text of the first element that matches a CSS selector.
    pub(crate) async fn text(&self, selector: &str) -> String {
        let element = self.element("css selector", selector).await;
        let text = self
            .order("GET", &format!("/element/{element}/text"), &Value::Null)
            .await;
        text.as_str().expect("text").to_owned()
    }

    /// Types into the element that matches a CSS selector.
    pub(crate) async fn write(&self, selector: &str, text: &str) {
        let element = self.element("css selector", selector).await;
        self.order("POST", &format!("/element/{element}/clear"), &json!({}))
            .await;
        self.order("POST", &format!("/element/{element}/value"), &json!({ "text": text }))
            .await;
    }

    /// Types to the element with the focus. Keys without a character have one of the private use area.
    pub(crate) async fn press(&self, key: char) {
        let actions = [
            json!({ "type": "keyDown", "value": key }),
            json!({ "type": "keyUp", "value": key }),
        ];
        let keyboard = json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] });
        self.order("POST", "/actions", &keyboard).await;
    }

    /// Submits the form whose field has the focus, and waits for the next page.
    pub(crate) async fn submit(&self) {
        self.mark_page().await;
        self.press(ENTER).await;
        self.wait_for_page().await;
    }

    /// Clicks an element that leads to another page, and waits for that page.
    pub(crate) async fn click_and_wait(&self, selector: &str) {
        self.mark_page().await;
        self.click(selector).await;
        self.wait_for_page().await;
    }

    /// Follows the link with that text, and waits for the page to which it leads.
    pub(crate) async fn follow(&self, text: &str) {
        self.mark_page().await;
        self.fetch(text).await;
        self.wait_for_page().await;
    }

    /// Marks the page: the next one has no mark.
    async fn mark_page(&self) {
        self.ask("window.isLeft = true").await;
    }

    /// Waits for the next page, since a click returns before the page has loaded.
    async fn wait_for_page(&self) {
        let path = format!("{}/execute/sync", self.session);
        let script = "return window.isLeft === undefined && document.readyState === 'complete'";
        let question = json!({ "script": script, "args": [] });
        within(TIMEOUT, "the next page", async {
            loop {
                // Between two pages there may be no answer.
                let (status, answer) = exchange(self.port, "POST", &path, &question).await;
                if status == 200 && answer["value"] == json!(true) {
                    break;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        })
        .await;
    }

    /// Clicks the element that matches a CSS selector.
    pub(crate) async fn click(&self, selector: &str) {
        let element = self.element("css selector", selector).await;
        self.order("POST", &format!("/element/{element}/click"), &json!({}))
            .await;
    }

    /// Clicks the link with that text, which leads to a file.
    pub(crate) async fn fetch(&self, text: &str) {
        let element = self.element("link text", text).await;
        self.order("POST", &format!("/element/{element}/click"), &json!({}))
            .await;
    }

    /// Returns the result of a script, for queries that the protocol does not offer otherwise.
    pub(crate) async fn ask(&self, script: &str) -> Value {
        self.order(
            "POST",
            "/execute/sync",
            &json!({ "script": format!("return {script}"), "args": [] }),
        )
        .await
    }

    /// Checks the page at all widths: nothing overflows, nothing that it needs was blocked; and saves a screenshot.
    pub(crate) async fn look(&self, name: &str) {
        for width in WIDTHS {
            let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
            self.command("Emulation.setDeviceMetricsOverride", metrics).await;
            let wide = self
                .ask("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
                .await;
            assert_eq!(wide[0], wide[1], "{name} overflows at {width} pixels");
            let whole = json!({ "format": "png", "captureBeyondViewport": true });
            let picture = self.command("Page.captureScreenshot", whole).await;
            let picture = picture["data"].as_str().expect("a picture");
            let file = self.pictures.join(format!("{name}-{width}.png"));
            std::fs::write(file, Base64::decode_vec(picture).expect("base64")).expect("written");
        }
        self.command("Emulation.clearDeviceMetricsOverride", json!({})).await;
        let said = self.order("POST", "/se/log", &json!({ "type": "browser" })).await;
        let said = said.as_array().expect("a log");
        // The browser also logs error statuses that are expected.
        let faults = said.iter().filter(|line| line["source"] != "network");
        assert_eq!(faults.count(), 0, "{name}: {said:?}");
    }

    /// The same in light and in dark colours.
    pub(crate) async fn look_in_both(&self, name: &str) {
        for scheme in ["light", "dark"] {
            let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
            self.command("Emulation.setEmulatedMedia", json!({ "features": features }))
                .await;
            self.look(&format!("{name}-{scheme}")).await;
        }
        self.command("Emulation.setEmulatedMedia", json!({ "features": [] }))
            .await;
    }

    /// A downloaded file, once it is complete.
    pub(crate) async fn downloaded(&self, name: &str) -> Vec<u8> {
        let file = self.folder.path().join("downloads").join(name);
        within(TIMEOUT, "the download", async {
            // The name belongs to an empty file until the download is complete.
            while !std::fs::metadata(&file).is_ok_and(|about| about.len() > 0) {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        })
        .await;
        std::fs::read(file).expect("it can be read")
    }

    async fn element(&self, using: &str, value: &str) -> String {
        let found = self
            .order("POST", "/element", &json!({ "using": using, "value": value }))
            .await;
        found[ELEMENT].as_str().expect("an element").to_owned()
    }

    async fn command(&self, command: &str, with: Value) -> Value {
        let order = json!({ "cmd": command, "params": with });
        self.order("POST", "/goog/cdp/execute", &order).await
    }

    async fn order(&self, method: &str, what: &str, body: &Value) -> Value {
        self.call(method, &format!("{}{what}", self.session), body).await
    }

    async fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = within(TIMEOUT, path, exchange(self.port, method, path, body)).await;
        assert_eq!(status, 200, "{method} {path} {body}: {answer}");
        answer["value"].clone()
    }
}

/// A request and its answer.
async fn exchange(port: u16, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut stream = TcpStream::connect(("127.0.0.1", port))
        .await
        .expect("chromedriver listens");
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .expect("written");
    let mut stream = BufReader::new(stream);
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.expect("an answer");
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(rest) = line.strip_prefix("http/1.1 ") {
            status = rest
                .split(' ')
                .next()
                .and_then(|status| status.parse().ok())
                .expect("a status");
        }
        if let Some(rest) = line.strip_prefix("content-length:") {
            length = rest.trim().parse().expect("a length");
        }
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await.expect("all of it");
    (status, serde_json::from_slice(&answer).expect("JSON"))
}
