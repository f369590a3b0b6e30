//! Claims for devices (DRA), and the NADs that their parameters for the SR-IOV driver name.

use std::borrow::Cow;

use super::raw::{FieldValue, RawFields, RawObject};
use super::{Meta, Misshapen, name_of};
use crate::json::JsonReader;

/// The API group of claims.
pub const CLAIM_GROUP: &str = "resource.k8s.io";
/// The name of the SR-IOV DRA driver, which is also its API group.
pub const DRA_DRIVER: &str = "sriovnetwork.k8snetworkplumbingwg.io";

/// The kinds of object that hold parameters for a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClaimKind {
    /// ResourceClaim
    Claim,
    /// ResourceClaimTemplate
    Template,
    /// DeviceClass, which has no namespace.
    Class,
}

impl ClaimKind {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Claim, Self::Template, Self::Class];

    /// The kind with this name.
    pub fn from_kind(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == kind)
    }

    /// The name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claim => "ResourceClaim",
            Self::Template => "ResourceClaimTemplate",
            Self::Class => "DeviceClass",
        }
    }

    /// The JSON pointer of the list of parameters.
    fn configs_at(self) -> &'static str {
        match self {
            Self::Claim => "/spec/devices/config",
            Self::Template => "/spec/spec/devices/config",
            Self::Class => "/spec/config",
        }
    }
}

/// A ResourceClaim, ResourceClaimTemplate or DeviceClass.
#[derive(Clone, Debug)]
pub struct DeviceClaim<'a> {
    /// Which of the three.
    pub kind: ClaimKind,
    /// Its metadata.
    pub meta: Meta<'a>,
    /// The parameters for the SR-IOV driver.
    pub configs: Vec<DriverConfig<'a>>,
    /// Whether the SR-IOV driver is named anywhere in it: in its name, a selector, a request or its parameters.
    pub names_driver: bool,
    /// The extended resource that a DeviceClass serves.
    pub extended_resource: Option<Cow<'a, str>>,
    /// Fields of a wrong type.
    pub misshapen: Vec<Misshapen>,
    pub(super) spec: RawFields<'a>,
}

/// One entry of the list of parameters.
#[derive(Clone, Debug)]
pub struct DriverConfig<'a> {
    /// The JSON pointer of the entry.
    pub pointer: String,
    /// Whether it says which requests it is for. Those of a DeviceClass are for the request that names the class.
    pub has_requests: bool,
    /// The VfConfig; `None` if it is no object.
    pub parameters: Option<RawFields<'a>>,
}

impl<'a> DriverConfig<'a> {
    /// The name of the NAD, if it names one.
    pub fn nad_name(&self) -> Option<Cow<'a, str>> {
        let name = self.parameters.as_ref()?.text("netAttachDefName").value()?;
        (!name.is_empty()).then(|| Cow::Owned(name_of(&name).to_owned()))
    }
}

impl<'a> DeviceClaim<'a> {
    /// Reads a DeviceClass. The items of a list of the API server do not state their kind.
    pub fn read_class(json: &'a str) -> Option<Self> {
        let head = JsonReader::whole(json, RawObject::read).ok()?;
        Some(Self::read(ClaimKind::Class, head))
    }

    /// Reads a ResourceClaim or ResourceClaimTemplate, whose spec has the spec of the claim.
    pub fn read_claim(json: &'a str) -> Option<Self> {
        let head = JsonReader::whole(json, RawObject::read).ok()?;
        let is_template = matches!(&head.spec, FieldValue::Value(spec) if spec.raw("spec").is_some());
        Some(Self::read(if is_template { ClaimKind::Template } else { ClaimKind::Claim }, head))
    }

    pub(super) fn read(kind: ClaimKind, head: RawObject<'a>) -> Self {
        let mut misshapen = Vec::new();
        let meta = Meta::of(head.metadata, &mut misshapen);
        let spec = head.spec.or_record("/spec", "an object", &mut misshapen).unwrap_or_default();
        let configs = configs(kind, &spec);
        let is_named = |field: &str| spec.raw(field).is_some_and(|raw| raw.contains(DRA_DRIVER));
        let names_driver = meta.name.contains(DRA_DRIVER) || spec.keys().any(is_named);
        let extended_resource = spec.text("extendedResourceName").value().filter(|_| kind == ClaimKind::Class);
        Self { kind, meta, configs, names_driver, extended_resource, misshapen, spec }
    }

    /// The names of the NADs that the driver configures devices by. Parameters without requests are ignored by it.
    pub fn nad_names(&self) -> impl Iterator<Item = Cow<'a, str>> {
        self.configs.iter().filter(|config| config.has_requests).filter_map(DriverConfig::nad_name)
    }
}

/// The entries for the SR-IOV driver.
fn configs<'a>(kind: ClaimKind, spec: &RawFields<'a>) -> Vec<DriverConfig<'a>> {
    let mut holder = spec.clone();
    let path = kind.configs_at().strip_prefix("/spec/").unwrap_or_default();
    let (below, list) = path.rsplit_once('/').unwrap_or(("", path));
    for field in below.split('/').filter(|field| !field.is_empty()) {
        let inner = holder.raw(field).and_then(|raw| RawFields::parse(raw).ok());
        holder = inner.unwrap_or_default();
    }
    let entries = holder.objects(list).value().unwrap_or_default();
    let ours = entries.into_iter().enumerate().filter_map(|(number, entry)| {
        let opaque = RawFields::parse(entry.raw("opaque")?).ok()?;
        if opaque.text("driver").value()? != DRA_DRIVER {
            return None;
        }
        let requests: Vec<String> = serde_json::from_str(entry.raw("requests").unwrap_or("[]")).unwrap_or_default();
        Some(DriverConfig {
            pointer: format!("{}/{number}", kind.configs_at()),
            has_requests: !requests.is_empty() || kind == ClaimKind::Class,
            parameters: opaque.raw("parameters").and_then(|raw| RawFields::parse(raw).ok()),
        })
    });
    ours.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Object;

    fn read(json: &str) -> DeviceClaim<'_> {
        match Object::read(json) {
            Ok(Some(Object::Claim(claim))) => claim,
            other => panic!("{other:?}"),
        }
    }

    fn parameters(nad: &str) -> String {
        format!(
            r#"{{"driver":"{DRA_DRIVER}","parameters":{{"apiVersion":"{DRA_DRIVER}/v1alpha1","kind":"VfConfig","netAttachDefName":{nad}}}}}"#
        )
    }

    #[test]
    fn finds_the_parameters_of_each_kind() {
        let opaque = parameters(r#""net""#);
        let entry = format!(r#"{{"requests":["vf"],"opaque":{opaque}}}"#);
        let devices = format!(
            r#"{{"devices":{{"requests":[{{"name":"vf"}}],"config":[{{"opaque":{{"driver":"x"}}}},{entry}]}}}}"#
        );
        for (kind, spec, pointer) in [
            ("ResourceClaim", devices.clone(), "/spec/devices/config/1"),
            ("ResourceClaimTemplate", format!(r#"{{"spec":{devices}}}"#), "/spec/spec/devices/config/1"),
            ("DeviceClass", format!(r#"{{"config":[{{}},{{"opaque":{opaque}}}]}}"#), "/spec/config/1"),
        ] {
            let json = format!(
                r#"{{"apiVersion":"resource.k8s.io/v1","kind":"{kind}","metadata":{{"name":"c","namespace":"apps"}},"spec":{spec}}}"#
            );
            let claim = read(&json);
            assert_eq!((claim.kind.name(), claim.meta.key().to_string().as_str()), (kind, "apps/c"));
            let found: Vec<_> =
                claim.configs.iter().map(|config| (config.pointer.as_str(), config.has_requests)).collect();
            assert_eq!(found, [(pointer, true)], "{kind}");
            assert_eq!(claim.nad_names().collect::<Vec<_>>(), ["net"]);
            assert!(claim.names_driver);
            // As in a list of the API server.
            let item = json.replace(&format!(r#""apiVersion":"resource.k8s.io/v1","kind":"{kind}","#), "");
            assert_ne!(item, json);
            let is_class = kind == "DeviceClass";
            let read = if is_class { DeviceClaim::read_class(&item) } else { DeviceClaim::read_claim(&item) }.unwrap();
            assert_eq!((read.kind, read.nad_names().count()), (claim.kind, 1), "{kind}");
        }
    }

    #[test]
    fn parameters_without_requests_name_no_nad() {
        for (requests, names_it) in [
            ("", false),
            (r#""requests":[ ],"#, false),
            (r#""requests":{},"#, false),
            (r#""requests":null,"#, false),
            (r#""requests":["vf"],"#, true),
        ] {
            let opaque = parameters(r#""net""#);
            let json = format!(
                r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"c"}},
                "spec":{{"devices":{{"config":[{{{requests}"opaque":{opaque}}}]}}}}}}"#
            );
            let claim = read(&json);
            assert_eq!((claim.configs.len(), claim.nad_names().count() == 1), (1, names_it), "{requests}");
        }
    }

    #[test]
    fn what_is_of_another_type_names_no_nad() {
        for nad in ["5", "null", r#""""#, "[]"] {
            let json = format!(
                r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{{"name":"c"}},"spec":{{"config":[{{"opaque":{}}}]}}}}"#,
                parameters(nad)
            );
            assert_eq!(read(&json).nad_names().count(), 0, "{nad}");
        }
        for spec in ["5", "{}", r#"{"config":{}}"#, r#"{"config":[5]}"#, r#"{"config":[{"opaque":5}]}"#] {
            let json = format!(
                r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{{"name":"c"}},"spec":{spec}}}"#
            );
            assert!(read(&json).configs.is_empty(), "{spec}");
        }
    }

    #[test]
    fn the_driver_may_be_named_in_a_selector_or_in_the_name() {
        let class = |name: &str, spec: &str| {
            format!(
                r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{{"name":"{name}"}},"spec":{spec}}}"#
            )
        };
        let selector = format!(
            r#"{{"selectors":[{{"cel":{{"expression":"device.driver == '{DRA_DRIVER}'"}}}}],"extendedResourceName":"a.io/b"}}"#
        );
        let (by_selector, by_name, other) = (class("c", &selector), class(DRA_DRIVER, "{}"), class("gpu", "{}"));
        assert!(read(&by_selector).names_driver && read(&by_name).names_driver && !read(&other).names_driver);
        assert_eq!(read(&by_selector).extended_resource.as_deref(), Some("a.io/b"));
    }
}
