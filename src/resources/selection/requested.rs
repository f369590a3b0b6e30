//! The values with which an element of the annotation asks something of the plugins.

use super::SelectedNetwork;
use super::json_form::ELEMENT;
use crate::cni::schema::Reading;
use crate::cni::{CniObject, fold};
use crate::json::{Document, Value};

/// How many addresses of an element are read.
const MAX_ADDRESSES: usize = 32;

/// The values of an element; what it does not ask for is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedValues {
    /// The addresses, each with or without a prefix length.
    pub ips: Vec<String>,
    /// The MAC address.
    pub mac: String,
    /// The InfiniBand GUID.
    pub guid: String,
    /// The gateways of the default route; `None` leaves it to the default network.
    pub default_route: Option<Vec<String>>,
}

impl SelectedNetwork {
    /// The values of this element, in the annotation that it was read from.
    pub fn requested(&self, annotation: &str) -> RequestedValues {
        let element = annotation.get(self.span.clone()).and_then(|text| Document::parse(text).ok());
        let Some(element) = element else { return RequestedValues::default() };
        let folded = fold::repeats(&element.root).then(|| fold::object(&[ELEMENT], &element.root, Reading::Text));
        let Some(object) = CniObject::of(folded.as_ref().unwrap_or(&element.root)) else {
            return RequestedValues::default();
        };
        let text = |key: &str| object.str_of(key).unwrap_or_default().to_owned();
        let texts = |value: &Value<'_>| -> Vec<String> {
            let elements = value.elements().unwrap_or_default();
            elements.iter().filter_map(Value::as_str).take(MAX_ADDRESSES).map(str::to_owned).collect()
        };
        RequestedValues {
            ips: object.value_of("ips").map(texts).unwrap_or_default(),
            mac: text("mac"),
            guid: text("infiniband-guid"),
            default_route: object.value_of("default-route").map(texts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Selection;

    #[test]
    fn each_element_has_its_own_values() {
        let text = r#"[{"name":"a","ips":["10.0.0.5/24","fd00::5"],"mac":"02:00:00:00:00:01"},
            {"name":"b","infiniband-guid":"02:00:00:00:00:00:00:01","default-route":["10.0.0.1"],"Mac":"02:00:00:00:00:02"},{"name":"c"}]"#;
        let selection = Selection::read(text, "apps");
        let found: Vec<_> = selection.networks().iter().map(|one| one.requested(text)).collect();
        assert_eq!(
            (found[0].ips.join(" ").as_str(), found[0].mac.as_str()),
            ("10.0.0.5/24 fd00::5", "02:00:00:00:00:01")
        );
        assert_eq!((found[1].guid.as_str(), found[1].mac.as_str()), ("02:00:00:00:00:00:00:01", "02:00:00:00:00:02"));
        assert_eq!(found[1].default_route, Some(vec!["10.0.0.1".to_owned()]));
        assert_eq!(found[2], RequestedValues::default());
        let names = "a, b@x";
        let selection = Selection::read(names, "apps");
        assert!(selection.networks().iter().all(|one| one.requested(names) == RequestedValues::default()));
    }
}
