//! A NAD without a resourceName: what happens to pods, and how to fix it.

use super::name::is_unqualified;
use super::{DeviceSource, ExpectedName, KEY, ResourceNameCheck};
use crate::cni::Plugin;
use crate::policy::finding::Findings;
use crate::policy::rules::nad_device::MISSING;

/// What happens to pods if a plugin that needs a device gets none.
fn consequence(kind: &str) -> &'static str {
    match kind {
        "sriov" => "pods that use this network hang in ContainerCreating with \"VF pci addr is required\"",
        "ib-sriov" => "pods that use this network hang in ContainerCreating without a deviceID",
        _ => "pods that use this network get no device",
    }
}

impl ResourceNameCheck<'_> {
    /// Reports a missing annotation.
    pub(super) fn missing(&self, answer: Option<&ExpectedName<'_>>, devices: &[&Plugin<'_>], out: &mut Findings<'_>) {
        let kind = devices.first().map_or("sriov", |plugin| plugin.kind);
        let pointer = if self.nad.meta.has_annotations() { "/metadata/annotations" } else { "/metadata" };
        // Built without `format!`: nearly every NAD that the operator writes gets this finding.
        let headline = ["the ", kind, " plugin needs a device, but the NAD has no resourceName annotation"].concat();
        let note = consequence(kind);
        match answer {
            Some(answer) => {
                let help = ["it becomes ", &answer.value, ", as ", answer.source.phrase()].concat();
                out.object(&MISSING, pointer, headline, note, help).with_repairs(self.repairs(&answer.value, devices));
            }
            None => {
                let help = self.help_for_missing(devices, out);
                let finding = out.object(&MISSING, pointer, headline, note, help);
                if !self.source().needs_name(self.scope) {
                    finding.at_most_warn();
                }
            }
        }
    }

    fn help_for_missing(&self, devices: &[&Plugin<'_>], out: &mut Findings<'_>) -> String {
        let unqualified =
            devices.iter().find_map(|plugin| plugin.object.str_of(KEY)).filter(|name| is_unqualified(name));
        match (unqualified, self.lacks_prefix(), self.source()) {
            (None, Some(network), _) => format!(
                "its network's resourceName is `{name}`, but the RESOURCE_PREFIX of the operator is not known: set `resourceName: \
                 {{prefix: <domain>}}` in nadmit's policy to that value, such as `openshift.io`, or add the annotation \
                 k8s.v1.cni.cncf.io/resourceName: <domain>/{name}",
                name = network.resource_name
            ),
            (_, _, DeviceSource::ByResourceName) => format!(
                "add the annotation k8s.v1.cni.cncf.io/resourceName: if pods claim the devices (DRA), exactly {}; if a device plugin offers \
                 them, <domain>/<name>",
                name_of_claimed(self.published(out))
            ),
            (Some(name), _, _) => format!(
                "the config says `{name}`, without the domain: add the annotation k8s.v1.cni.cncf.io/resourceName: <domain>/{name}"
            ),
            (None, None, DeviceSource::Either) => {
                let by_name = match self.published(out) {
                    [] => String::new(),
                    names => format!(", or in the driver's mode MULTUS set that annotation to exactly {}", name_of_claimed(names)),
                };
                format!(
                    "if a device plugin offers the devices, add the annotation k8s.v1.cni.cncf.io/resourceName: <domain>/<name>; if \
                     pods claim them (DRA), name this NAD as netAttachDefName in the VfConfig of a ResourceClaim, \
                     ResourceClaimTemplate or DeviceClass{by_name}"
                )
            }
            (None, None, _) => "add the annotation k8s.v1.cni.cncf.io/resourceName: <domain>/<name>, as the node offers the devices; if pods claim their devices (DRA) instead, set `dra: allow` for this namespace in the policy"
                .to_owned(),
        }
    }
}

/// The names under which Multus finds claimed devices.
fn name_of_claimed(published: &[String]) -> String {
    match published {
        [] => {
            "the value that a DeviceAttributes object gives to their attribute k8s.cni.cncf.io/resourceName".to_owned()
        }
        names => format!("{}, which the SR-IOV DRA driver publishes", names.join(" or ")),
    }
}
