//! A user of the API server.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::StreamExt;
use http::Request;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::task::AbortHandle;

use crate::client::block_on;
use crate::processes::wait;

/// An error response of the API server.
#[derive(Debug)]
pub struct ApiRejection {
    pub code: u16,
    pub message: String,
}

/// The API server, as one user.
#[derive(Clone)]
pub struct Api {
    client: kube::Client,
}

impl Api {
    pub fn new(kubeconfig: &Path) -> Self {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
        let client = block_on(async {
            let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
            kube::Client::try_from(config).unwrap()
        });
        Self { client }
    }

    /// Sends any request.
    pub fn send(&self, method: &str, path: &str, kind: &str, body: Option<&Value>) -> Result<Value, ApiRejection> {
        self.send_as("", method, path, kind, body)
    }

    /// Sends a body of a content type, with a user agent.
    pub fn send_as(
        &self,
        agent: &str,
        method: &str,
        path: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> Result<Value, ApiRejection> {
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        let request = if agent.is_empty() { request } else { request.header("user-agent", agent) };
        let request = request.body(body.map(|body| serde_json::to_vec(body).unwrap()).unwrap_or_default()).unwrap();
        block_on(self.client.request(request)).map_err(|error| match error {
            kube::Error::Api(status) => ApiRejection { code: status.code, message: status.message },
            other => panic!("{method} {path}: {other:?}"),
        })
    }

    /// The object at a path; `None` if it does not exist.
    pub fn get(&self, path: &str) -> Option<Value> {
        match self.send("GET", path, "", None) {
            Ok(value) => Some(value),
            Err(error) if error.code == 404 => None,
            Err(error) => panic!("{path}: {error:?}"),
        }
    }

    /// Creates an object in the collection at a path.
    pub fn try_create(&self, path: &str, body: &Value) -> Result<Value, ApiRejection> {
        self.send("POST", path, "application/json", Some(body))
    }

    pub fn create(&self, path: &str, body: &Value) -> Value {
        self.try_create(path, body).unwrap_or_else(|error| panic!("{path}: {error:?}\n{body:#}"))
    }

    /// A merge patch.
    pub fn try_patch(&self, path: &str, body: &Value) -> Result<Value, ApiRejection> {
        self.send("PATCH", path, "application/merge-patch+json", Some(body))
    }

    pub fn patch(&self, path: &str, body: &Value) -> Value {
        self.try_patch(path, body).unwrap_or_else(|error| panic!("{path}: {error:?}\n{body:#}"))
    }

    pub fn delete(&self, path: &str) {
        self.send("DELETE", path, "", None).unwrap_or_else(|error| panic!("{path}: {error:?}"));
    }

    /// Waits until the object at a path is as wanted.
    pub fn wait(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        wait(path, || self.get(path).filter(&wanted))
    }

    /// Waits until no object is at the path.
    pub fn wait_deleted(&self, path: &str) {
        wait(path, || self.get(path).is_none().then_some(()));
    }

    /// Watches all changes of a collection from now on.
    pub fn watch(&self, path: &str) -> Watch {
        let list = self.get(path).unwrap();
        let version = list["metadata"]["resourceVersion"].as_str().unwrap();
        let request = Request::get(format!("{path}?watch=1&resourceVersion={version}")).body(Vec::new()).unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&events);
        let client = self.client.clone();
        let task = block_on(async {
            let stream = client.request_events::<Value>(request).await.unwrap();
            tokio::spawn(async move {
                let mut stream = Box::pin(stream);
                while let Some(event) = stream.next().await {
                    let event: WatchEvent<Value> = event.unwrap();
                    let (exists, object) = match event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => (true, object),
                        WatchEvent::Deleted(object) => (false, object),
                        WatchEvent::Bookmark(_) => continue,
                        WatchEvent::Error(status) => panic!("the watch ended: {status:?}"),
                    };
                    let object = Arc::new(object);
                    seen.lock().unwrap().push(Event { at: Instant::now(), exists, object });
                }
            })
            .abort_handle()
        });
        Watch { events, task }
    }
}

/// A watch event.
#[derive(Clone, Debug)]
pub struct Event {
    pub at: Instant,
    /// Whether the object exists after it.
    pub exists: bool,
    pub object: Arc<Value>,
}

/// A watch; dropping it ends it.
pub struct Watch {
    events: Arc<Mutex<Vec<Event>>>,
    task: AbortHandle,
}

impl Watch {
    /// The events so far of the object of that name.
    pub fn of(&self, name: &str) -> Vec<Event> {
        let events = self.events.lock().unwrap();
        events.iter().filter(|event| event.object["metadata"]["name"] == name).cloned().collect()
    }

    /// The objects that exist now, of all that changed.
    pub fn now(&self) -> Vec<Arc<Value>> {
        let events = self.events.lock().unwrap();
        let last: BTreeMap<_, _> =
            events.iter().map(|event| (event.object["metadata"]["name"].as_str(), event)).collect();
        last.into_values().filter(|event| event.exists).map(|event| event.object.clone()).collect()
    }

    /// Waits until the object of that name is deleted.
    pub fn wait_deleted(&self, name: &str) {
        let is_gone = |events: &Vec<Event>| {
            let last = events.iter().rev().find(|event| event.object["metadata"]["name"] == name);
            last.is_some_and(|event| !event.exists)
        };
        wait(&format!("the end of {name}"), || is_gone(&self.events.lock().unwrap()).then_some(()));
    }

    /// Waits for an event of the object of that name.
    pub fn wait(&self, name: &str, wanted: impl Fn(&Event) -> bool) -> Event {
        wait(&format!("a change of {name}"), || self.of(name).into_iter().find(&wanted))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}
