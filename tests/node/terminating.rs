//! A bad NAD keeps deleted pods in Terminating; `nadmit doctor pod` says which NAD it is.

use super::errors::PODS;
use super::on_a_node;
use crate::harness::{nadmit, run};
use crate::objects::{nad, nad_at, nads};
use crate::processes::wait;

const BAD: &str = r#"{"cniVersion":"1.0.0","type":"macvlan","master":"eth0","ipam":{"type":"host-local","subnet":"10.53.0.0/24","rangeStart":"10.54.0.10"}}"#;

#[test]
fn a_bad_nad_keeps_deleted_pods_and_doctor_names_it() {
    on_a_node(|node| {
        let doctor = |arguments: &[&str]| {
            let mut command = nadmit(&["doctor", "pod", "default/p"]);
            command.args(arguments).env("KUBECONFIG", node.cluster.kubeconfig("admin"));
            let out = run(command);
            let text = String::from_utf8(out.stdout).unwrap() + &String::from_utf8_lossy(&out.stderr);
            println!("{text}");
            (out.status.code().unwrap(), text)
        };
        node.cluster.admin.create(&nads("default"), &nad("bad", BAD));
        node.attach("p", "bad");
        wait("the error", || node.event("p", "FailedCreatePodSandBox"));
        let (code, text) = doctor(&[]);
        assert_eq!(code, 1);
        for words in [
            "pod default/p does not start",
            "invalid range set 0: RangeStart 10.54.0.10 not in network 10.53.0.0/24",
            "error[ipam/host-local-range]",
            "NetworkAttachmentDefinition/default/bad:",
            "rangeStart",
            "help: ",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let report: serde_json::Value = serde_json::from_str(&doctor(&["--output", "json"]).1).unwrap();
        assert_eq!(report["errors"][0]["rules"][0], "ipam/host-local-range", "{report:#}");
        assert_eq!(report["nads"][0]["findings"][0]["explains"], true, "{report:#}");

        let pod = format!("{PODS}/p");
        node.cluster.admin.delete(&pod);
        wait("the error at its end", || node.event("p", "FailedKillPod"));
        assert!(node.cluster.admin.get(&pod).is_some());
        let (_, text) = doctor(&[]);
        assert!(text.contains("is stuck in Terminating"), "{text}");
        node.cluster.admin.delete(&nad_at("default", "bad"));
        node.cluster.admin.wait_deleted(&pod);
        let (code, text) = doctor(&[]);
        assert!(code == 2 && text.contains("pod default/p does not exist"), "{text}");
    });
}
