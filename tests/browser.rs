//! A real browser without a window: chromium, controlled through a pipe with its DevTools protocol.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::not_run::not_run;

/// The most that a picture in the documentation may take.
const MAX_PICTURE_BYTES: usize = 200 * 1024;

/// The timeout of every call to the browser: a page of ten thousand objects loads slowly on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Whether a picture in the documentation shows the page as it is: beside the picture is the hash of the page that it was taken of. With
/// `GENERATE=1`, where there is a browser, `take` takes it again if the page has changed.
pub fn is_picture_of(picture: &str, html: &str, take: impl FnOnce(&mut Browser) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(picture);
    let hash_file = path.with_extension("png.sha256");
    // The page names the version of nadmit, which changes nothing else of it.
    let html = html.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    let hash = format!("{}\n", nadmit::tls::sha256_digits(&html, 64));
    let is_shown = || fs::read_to_string(&hash_file).is_ok_and(|taken| taken == hash);
    if std::env::var_os("GENERATE").is_some_and(|value| value == "1") && !is_shown() {
        let Some(mut browser) = Browser::start() else { return };
        fs::write(&path, BASE64_STANDARD.decode(take(&mut browser)).unwrap()).unwrap();
        fs::write(&hash_file, &hash).unwrap();
    }
    assert!(is_shown(), "{picture} shows an older page: run `make generate` where Chromium is installed");
    let picture = fs::read(path).unwrap();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() < MAX_PICTURE_BYTES, "{} bytes", picture.len());
}

/// A browser with one page; dropping this ends the browser.
pub struct Browser {
    child: Child,
    input: ChildStdin,
    output: Receiver<Value>,
    session: Value,
    number: u64,
    /// The events that it sent.
    events: VecDeque<Value>,
    _profile: TempDir,
}

impl Browser {
    /// Starts it; `None` if it is not installed, outside of CI. The variable `CHROMIUM` has its path.
    pub fn start() -> Option<Self> {
        let chromium = std::env::var_os("CHROMIUM").unwrap_or_else(|| "chromium".into());
        if Command::new(&chromium).arg("--version").output().is_err() {
            not_run("HTML pages in a browser", "Install chromium, or set CHROMIUM to its path.");
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 1>&2"]).arg(chromium);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]);
        command.args(["--remote-debugging-pipe", "--no-first-run", "--window-size=1280,900"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let mut pipe = BufReader::new(child.stdout.take().unwrap());
        let (sender, output) = channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while pipe.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let events = VecDeque::new();
        let mut browser = Self { child, input, output, session: Value::Null, number: 0, events, _profile: profile };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", &json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].clone();
        browser.call("Page.enable", &json!({}));
        browser.call("Network.enable", &json!({}));
        Some(browser)
    }

    /// Opens a file, with a fragment in the address.
    pub fn open(&mut self, file: &Path, fragment: &str) {
        // A change of the fragment alone would not reload the page.
        for address in ["about:blank".to_owned(), format!("file://{}{fragment}", file.display())] {
            self.events.clear();
            self.call("Page.navigate", &json!({"url": address}));
            while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
                let event = self.output.recv_timeout(TIMEOUT).expect("the page loads");
                self.events.push_back(event);
            }
        }
    }

    /// The addresses that the page requested since it was opened.
    pub fn requests(&mut self) -> Vec<String> {
        self.call("Runtime.evaluate", &json!({"expression": "1"}));
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.map(|event| event["params"]["request"]["url"].as_str().unwrap().to_owned()).collect()
    }

    /// The value of an expression in the page; of a promise, once it has one.
    pub fn value(&mut self, expression: &str) -> Value {
        let evaluation = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", &evaluation);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer:#}");
        answer["result"]["value"].clone()
    }

    /// Presses a key; `text` is what the key types, if anything.
    pub fn press(&mut self, key: &str, code: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Types text into the focused element.
    pub fn write(&mut self, text: &str) {
        self.call("Input.insertText", &json!({"text": text}));
    }

    /// Clicks on the first element that matches a selector.
    pub fn click(&mut self, selector: &str) {
        let place = format!(
            "(() => {{ const element = document.querySelector({selector:?}); element.scrollIntoView({{ block: 'center' }}); \
             const box = element.getBoundingClientRect(); return [box.x + 5, box.y + box.height / 2]; }})()"
        );
        let place = self.value(&place);
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Sets the reader's preferences: a medium, `screen` or `print`, and a colour scheme.
    pub fn prefer(&mut self, medium: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", &json!({"media": medium, "features": features}));
    }

    /// Sets the size of the window.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// A screenshot, in base 64.
    pub fn picture(&mut self) -> String {
        self.call("Page.captureScreenshot", &json!({}))["data"].as_str().unwrap().to_owned()
    }

    /// The printed page, as a PDF in base 64.
    pub fn printed(&mut self) -> String {
        self.call("Page.printToPDF", &json!({}))["data"].as_str().unwrap().to_owned()
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": parameters});
        if self.session.is_string() {
            message["sessionId"] = self.session.clone();
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.output.recv_timeout(TIMEOUT).unwrap_or_else(|_| panic!("no answer to {method}"));
            if answer["id"] == self.number {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push_back(answer);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
