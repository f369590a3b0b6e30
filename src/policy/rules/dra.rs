//! Rules on devices by claim (DRA): on the parameters of claims, and on NADs that claims name.

use super::super::finding::Findings;
use super::super::rule::rule;
use super::super::similar::{named_once, suggest};
use super::nad_device::MISMATCH;
use crate::cni::Config;
use crate::json::escape;
use crate::policy::ClaimFacts;
use crate::resources::raw::FieldValue;
use crate::resources::{DRA_DRIVER, DeviceClaim, DriverConfig, RESOURCE_NAME};

rule! { VF_CONFIG = "dra/vf-config", Deny;
    wrong: "A claim has parameters that the SR-IOV DRA driver cannot decode.";
    why: "The driver decodes the VfConfig strictly, and only when the pod is already on its node. An unknown field, a value of the \
        wrong type or another kind is an error, and pods that use the claim hang in ContainerCreating.";
    fix: "Correct or remove the field that the message names.";
}

rule! { IGNORED = "dra/ignored", Warn;
    wrong: "A claim has parameters that the SR-IOV DRA driver ignores.";
    why: "The driver applies a VfConfig only to the requests that its entry lists, and to none if it lists none. Of its fields the \
        driver uses `driver`, `ifName` and `netAttachDefName`; it always looks up the NAD in the namespace of the claim.";
    fix: "List the requests under `requests`, and remove the fields without effect.";
}

rule! { CONFLIST = "dra/conflist", Warn;
    wrong: "The NAD has a list of plugins, but its device comes by claim (DRA).";
    why: "In its mode STANDALONE the SR-IOV DRA driver reads `spec.config` as the config of one plugin. A list has no `type` at the \
        top level, so there is no plugin to run, and pods hang in ContainerCreating.";
    fix: "Write the config of the device plugin alone, with its `type` at the top level.";
}

/// The fields of a VfConfig, and whether each is a boolean.
const FIELDS: [(&str, bool); 7] = [
    ("apiVersion", false),
    ("kind", false),
    ("driver", false),
    ("addVhostMount", true),
    ("ifName", false),
    ("netAttachDefName", false),
    ("netAttachDefNamespace", false),
];
/// What happens to pods if the driver cannot decode the parameters.
const NOT_PREPARED: &str = "the driver cannot prepare the device; pods that use the claim hang in ContainerCreating";

/// The rules on a claim.
pub(super) fn check(claim: &DeviceClaim<'_>, out: &mut Findings<'_>) {
    for config in &claim.configs {
        check_parameters(config, out);
        check_ignored(claim, config, out);
    }
}

fn check_parameters(config: &DriverConfig<'_>, out: &mut Findings<'_>) {
    let pointer = format!("{}/opaque/parameters", config.pointer);
    let Some(parameters) = &config.parameters else {
        let help = format!("write an object with `apiVersion: {DRA_DRIVER}/v1alpha1` and `kind: VfConfig`");
        out.object(&VF_CONFIG, pointer, "the parameters are not an object", NOT_PREPARED, help);
        return;
    };
    let version = parameters.text("apiVersion").value().unwrap_or_default();
    let is_of_group = version.split_once('/').is_some_and(|(group, _)| group == DRA_DRIVER);
    let kind = parameters.text("kind").value().unwrap_or_default();
    if !is_of_group || kind != "VfConfig" {
        let headline = format!("the parameters are of kind {kind:?}, not a VfConfig of the SR-IOV driver");
        let help = format!("write `apiVersion: {DRA_DRIVER}/v1alpha1` and `kind: VfConfig`");
        out.object(&VF_CONFIG, pointer, headline, NOT_PREPARED, help);
        return;
    }
    if version.strip_prefix(DRA_DRIVER) != Some("/v1alpha1") {
        let number = version.rsplit_once('/').map_or("", |(_, number)| number);
        let headline = format!("nadmit does not know VfConfigs of version `{number}`");
        let note = "a driver that knows only v1alpha1 cannot prepare the device";
        let help = format!("check that the installed driver knows it, or write `apiVersion: {DRA_DRIVER}/v1alpha1`");
        out.object(&VF_CONFIG, format!("{pointer}/apiVersion"), headline, note, help).at_most_warn();
        return;
    }
    let near = |key: &str| suggest(key, FIELDS.into_iter().map(|(field, _)| field));
    let is_field = |key: &&str| FIELDS.into_iter().any(|(field, _)| field == *key);
    let given: Vec<&str> = parameters.keys().filter(is_field).collect();
    let named = named_once(parameters.keys().filter(|key| !is_field(key)).filter_map(near));
    for key in parameters.keys() {
        let place = format!("{pointer}/{}", escape(key));
        let Some((field, is_boolean)) = FIELDS.into_iter().find(|(field, _)| *field == key) else {
            let known = near(key);
            let help = known.map_or_else(|| "remove it".to_owned(), |known| format!("did you mean `{}`?", known.word));
            let is_free = |word: &str| named.contains(&word) && !given.contains(&word);
            let meant = known.filter(|known| known.is_only && is_free(known.word));
            let finding = out.object(&VF_CONFIG, place, format!("a VfConfig has no field `{key}`"), NOT_PREPARED, help);
            finding.about_key().replaced_by(meant.map(|known| known.word));
            continue;
        };
        let wanted = if is_boolean { "true or false" } else { "a string" };
        let is_wrong = match parameters.raw(field) {
            Some("true" | "false") if is_boolean => false,
            Some(_) if is_boolean => true,
            _ => matches!(parameters.text(field), FieldValue::Wrong(_)),
        };
        if is_wrong {
            let headline = format!("`{field}` of the VfConfig is not {wanted}");
            out.object(&VF_CONFIG, place, headline, NOT_PREPARED, format!("write {wanted}"));
        }
    }
}

fn check_ignored(claim: &DeviceClaim<'_>, config: &DriverConfig<'_>, out: &mut Findings<'_>) {
    if !config.has_requests {
        let headline = "the parameters for the SR-IOV driver list no requests";
        let note = "the driver applies them to no device";
        out.object(&IGNORED, config.pointer.clone(), headline, note, "add `requests` with the names of the requests");
        return;
    }
    let Some(parameters) = &config.parameters else { return };
    let pointer = |field: &str| format!("{}/opaque/parameters/{field}", config.pointer);
    let namespace = parameters.text("netAttachDefNamespace").value().unwrap_or_default();
    if !namespace.is_empty() && (claim.meta.namespace.is_empty() || namespace != claim.meta.namespace) {
        let headline = format!("`netAttachDefNamespace: {namespace}` has no effect");
        let note = "the driver looks the NAD up in the namespace of the claim";
        let help = "remove it, and create the NAD in the namespace of the claim";
        out.object(&IGNORED, pointer("netAttachDefNamespace"), headline, note, help).about_key();
    }
    if parameters.raw("addVhostMount") == Some("true") {
        let note = "the driver mounts no vhost devices into the pod";
        let help = "remove it, and give the pod its vhost devices in another way";
        out.object(&IGNORED, pointer("addVhostMount"), "`addVhostMount` has no effect", note, help).about_key();
    }
}

/// The rules on the config of a NAD whose device comes by claim.
pub(in crate::policy) fn check_claimed(config: &Config<'_>, out: &mut Findings<'_>) {
    if config.is_list {
        let span = config.root.get_exact("plugins").map_or(config.root.value.span, |member| member.key_span);
        let headline = "the config is a list of plugins, but a claim names this NAD";
        let note = "the SR-IOV DRA driver reads it as the config of one plugin; pods hang in ContainerCreating";
        let help = "write the config of the device plugin alone, with its `type` at the top";
        out.config(&CONFLIST, span, headline, note, help).about_key();
    }
}

/// The resourceName of a NAD where the driver is in its mode MULTUS. A device plugin may offer devices under a name that the driver does
/// not publish, so it is reported only if the driver seems to be meant. `published`: what may be named of its names.
pub(in crate::policy) fn check_name(name: &str, claims: &ClaimFacts, published: &[String], out: &mut Findings<'_>) {
    let is_named = claims.is_named_by_class || claims.is_named_by_claim;
    if claims.is_published != Some(false) || (claims.published.is_empty() && !is_named) {
        return;
    }
    let pointer = format!("/metadata/annotations/{}", escape(RESOURCE_NAME));
    let headline = format!("annotation resourceName is {name}, which the DRA driver does not publish");
    let by_name = "in the driver's mode MULTUS a claimed device is found only by exactly the name that is published";
    let names = published.join(" or ");
    let (note, help) = match names.as_str() {
        "" => (
            by_name.to_owned(),
            "write the value of the attribute k8s.cni.cncf.io/resourceName that a DeviceAttributes object gives to the devices".to_owned(),
        ),
        _ => (
            format!("{by_name}: {names}"),
format!("if pods claim the devices, write {names}, or publish them as {name}; if a device plugin offers {name}, leave it"),
        ),
    };
    out.object(&MISMATCH, pointer, headline, note, help).at_most_warn();
}
