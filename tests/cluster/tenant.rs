//! `nadmit audit` and `nadmit doctor` on a part of a cluster: with the permissions of a tenant in one namespace, and with a
//! selector. What is judged gets the same verdict as in an audit of everything; what may not be read is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::audit::{audit, change_vlan, make, orphan};
use crate::cluster::TestCluster;
use crate::harness::{nadmit, run};
use crate::objects::{OPERATOR, TestNetworkKind, nad, nad_at, nads, network};
use crate::operator::OperatorTemplate;
use crate::processes::wait;

const TEAM: &str = "team-a";

/// The findings of each object in a report, as JSON.
fn documents(out: &Output) -> BTreeMap<String, Value> {
    let report: Value = serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out.stderr)));
    let documents = report["documents"].as_array().unwrap().iter();
    documents.map(|document| (document["source"].as_str().unwrap().to_owned(), document.clone())).collect()
}

/// The rules of each finding, with its object.
fn rules(documents: &BTreeMap<String, Value>) -> BTreeSet<String> {
    let of = |(source, document): (&String, &Value)| {
        let findings = document["findings"].as_array().unwrap().clone();
        let source = source.clone();
        findings.into_iter().map(move |finding| format!("{} {source}", finding["rule"].as_str().unwrap()))
    };
    documents.iter().flat_map(of).collect()
}

fn words(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// Gives the tenant these permissions in their namespace.
fn allow(cluster: &TestCluster, rules: &Value) {
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{TEAM}");
    cluster.admin.create(&format!("{rbac}/roles"), &json!({ "metadata": { "name": "reader" }, "rules": rules }));
    let binding = json!({ "metadata": { "name": "reader" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tom" }] });
    cluster.admin.create(&format!("{rbac}/rolebindings"), &binding);
    let may = ["auth", "can-i", "list", "network-attachment-definitions", "--namespace", TEAM];
    wait("the tenant's permissions", || cluster.kubectl("tenant", &may, "").status.success().then_some(()));
}

/// The tenant's kubeconfig, with a namespace in its context.
fn kubeconfig_of_the_team(cluster: &TestCluster) -> PathBuf {
    let mut kubeconfig: Value =
        serde_json::from_str(&fs::read_to_string(cluster.kubeconfig("tenant")).unwrap()).unwrap();
    kubeconfig["contexts"][0]["context"]["namespace"] = TEAM.into();
    let file = cluster.directory().join("team.kubeconfig");
    fs::write(&file, kubeconfig.to_string()).unwrap();
    file
}

fn doctor(kubeconfig: &Path, arguments: &[&str]) -> Output {
    let mut command = nadmit(&["doctor"]);
    command.args(arguments).args(["--color", "never"]).env("KUBECONFIG", kubeconfig);
    run(command)
}

#[test]
fn a_tenant_audits_one_namespace() {
    let cluster = TestCluster::without_nadmit(OperatorTemplate::Upstream);
    for namespace in [TEAM, "other"] {
        cluster.namespace(namespace);
        cluster
            .admin
            .create(&nads(namespace), &nad("broken", r#"{"cniVersion":"1.0.0","type":"macvlan","mtu":"9000"}"#));
    }
    // A rendered NAD, one whose network was deleted, and a network of the team itself, which this operator ignores.
    make(&cluster, "rendered", TEAM, &json!({}));
    cluster.jane.wait(&nad_at(TEAM, "rendered"), |_| true);
    cluster.admin.create(&nads(TEAM), &orphan());
    let mut own = network(TestNetworkKind::Sriov, "own", TEAM, &json!({}));
    own["metadata"]["namespace"] = TEAM.into();
    cluster.admin.create(&TestNetworkKind::Sriov.path().replace(OPERATOR, TEAM), &own);
    allow(
        &cluster,
        &json!([
            { "apiGroups": ["k8s.cni.cncf.io"], "resources": ["network-attachment-definitions"], "verbs": ["get", "list"] },
            { "apiGroups": ["sriovnetwork.openshift.io"], "resources": ["sriovnetworks"], "verbs": ["get", "list"] },
            { "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] },
            { "apiGroups": [""], "resources": ["events"], "verbs": ["list"] },
        ]),
    );
    let absent = format!("audit/nad-absent SriovNetwork/{TEAM}/own");
    let whole = wait("the end of the grace period", || {
        let whole = documents(&audit(&cluster, "admin", &["-o", "json", "-n", TEAM]));
        rules(&whole).contains(&absent).then_some(whole)
    });
    let out = audit(&cluster, "tenant", &["-o", "json", "-n", TEAM]);
    assert_eq!(out.status.code(), Some(1), "{}", words(&out));
    let (part, all) = (rules(&documents(&out)), rules(&whole));
    assert!(part.is_subset(&all), "the tenant's findings {part:#?} are those of an administrator {all:#?}");
    for wanted in [absent, format!("nad/field-type NetworkAttachmentDefinition/{TEAM}/broken")] {
        assert!(part.contains(&wanted), "{wanted}: {part:#?}");
    }
    // Only who may read the operator's namespace knows that the owner does not exist.
    let orphan = format!("audit/orphan NetworkAttachmentDefinition/{TEAM}/orphan");
    assert!(all.contains(&orphan) && !part.contains(&orphan), "{part:#?}");
    assert!(all.iter().chain(&part).all(|found| found.contains(&format!("/{TEAM}/"))), "{all:#?}");

    // One line for each thing that may not be read, with the permission.
    let lines: Vec<String> = words(&out).lines().map(str::to_owned).collect();
    for right in [
        "list network-attachment-definitions in all namespaces",
        "list sriovnetworks in all namespaces",
        "list sriovibnetworks in namespace team-a",
        "list ovsnetworks in namespace team-a",
        "list namespaces",
        "list sriovnetworknodepolicies in all namespaces",
        "list deviceclasses",
        "list sriovoperatorconfigs, deployments and serviceaccounts and to create subjectaccessreviews",
    ] {
        let end = format!("missing permission: {right}");
        assert_eq!(lines.iter().filter(|line| line.ends_with(&end)).count(), 1, "{right}: {lines:#?}");
    }
    assert_eq!(lines.len(), 8, "{lines:#?}");

    for (arguments, wanted) in [
        (&["-o", "json"][..], "cannot audit all namespaces: missing permission: list "),
        (&["-o", "json", "-A"], "pass --namespace NAME to audit one"),
        (&["-n", "other"], "missing permission: list network-attachment-definitions or one of sriovnetworks"),
        (
            &["-n", TEAM, "--observe", "1s"],
            "SriovNetworks were not observed: missing permission: watch sriovnetworks in namespace team-a",
        ),
    ] {
        let out = audit(&cluster, "tenant", arguments);
        let code = if arguments.contains(&"--observe") { 1 } else { 2 };
        assert!(out.status.code() == Some(code) && words(&out).contains(wanted), "{arguments:?}: {}", words(&out));
    }
    let out = audit(&cluster, "admin", &["-n", "absent"]);
    assert!(out.status.success() && words(&out).contains("namespace `absent` does not exist"), "{}", words(&out));
    doctor_works_for(&cluster);
    doctor_works_with_all_kinds(&cluster);
    works_as_a_plugin(&cluster);
}

/// The tenant examines the network and a pod of their namespace.
fn doctor_works_for(cluster: &TestCluster) {
    let (plain, team) = (cluster.kubeconfig("tenant"), kubeconfig_of_the_team(cluster));
    let text = |out: &Output| format!("{}{}", String::from_utf8_lossy(&out.stdout), words(out));
    let named = doctor(&plain, &["own", "-n", TEAM]);
    let shown = text(&named);
    assert!(named.status.code() == Some(1) && shown.starts_with("SriovNetwork team-a/own: "), "{shown}");
    assert!(shown.contains("missing permission: list sriovnetworknodepolicies"), "{shown}");
    // Without the permission to list all namespaces, the namespace of the context is one to look in.
    let shown = text(&doctor(&team, &["own"]));
    assert!(shown.starts_with("SriovNetwork team-a/own: "), "{shown}");
    for (arguments, wanted) in [
        (&["none", "-n", TEAM][..], "missing permission: get sriovibnetworks in namespace team-a"),
        (
            &["own"],
            "cannot find network `own`: missing permission: list sriovnetworks in all namespaces; pass --namespace",
        ),
        (&["pod", "none", "-n", TEAM], "pod team-a/none does not exist"),
        (&["pod", "web"], "missing permission: get pods in namespace default"),
    ] {
        let out = doctor(&plain, arguments);
        assert!(out.status.code() == Some(2) && words(&out).contains(wanted), "{arguments:?}: {}", text(&out));
    }
    let pod = json!({ "metadata": { "name": "web", "annotations": { "k8s.v1.cni.cncf.io/networks": "broken" } },
        "spec": { "containers": [{ "name": "c", "image": "c" }] } });
    cluster.admin.create(&format!("/api/v1/namespaces/{TEAM}/pods"), &pod);
    let named = doctor(&plain, &["pod", "team-a/web"]);
    let shown = text(&named);
    assert!(named.status.code() == Some(1) && shown.contains("error[nad/field-type]"), "{shown}");
    for (kubeconfig, arguments) in [(&plain, &["pod", "web", "-n", TEAM][..]), (&team, &["pod", "web"])] {
        assert_eq!(text(&doctor(kubeconfig, arguments)), shown, "{arguments:?}");
    }
}

/// With the Role of docs/cli.md, all networks of the namespace are read, and the operator is still unknown.
fn doctor_works_with_all_kinds(cluster: &TestCluster) {
    let kinds = ["sriovnetworks", "sriovibnetworks", "ovsnetworks"];
    let role = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{TEAM}/roles/reader");
    let mut rules = cluster.admin.get(&role).unwrap()["rules"].clone();
    rules[1]["resources"] = json!(kinds);
    cluster.admin.patch(&role, &json!({ "rules": rules }));
    let may = ["auth", "can-i", "list", "ovsnetworks.sriovnetwork.openshift.io", "--namespace", TEAM];
    wait("the permission to list all networks", || cluster.kubectl("tenant", &may, "").status.success().then_some(()));
    let out = doctor(&cluster.kubeconfig("tenant"), &["own", "-n", TEAM]);
    assert_eq!(out.status.code(), Some(1), "{}", words(&out));
    let out = doctor(&cluster.kubeconfig("tenant"), &["none", "-n", TEAM]);
    assert!(out.status.code() == Some(1), "it is known not to exist: {}", words(&out));
}

/// The real kubectl finds the program under its name as a plugin.
fn works_as_a_plugin(cluster: &TestCluster) {
    let path = cluster.directory().join("plugins");
    fs::create_dir(&path).unwrap();
    for name in ["kubectl-nadmit", "kubectl_complete-nadmit"] {
        symlink(env!("CARGO_BIN_EXE_nadmit"), path.join(name)).unwrap();
    }
    let kubectl = |arguments: &[&str]| {
        let mut command = Command::new(cluster.bin.join("kubectl"));
        command.args(arguments).env("PATH", &path).env("KUBECONFIG", kubeconfig_of_the_team(cluster));
        command.env("HOME", cluster.directory());
        let out = run(command);
        (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned(), words(&out))
    };
    let (code, shown, message) = kubectl(&["nadmit", "doctor", "pod", "--help"]);
    assert!(code == Some(0) && shown.contains("Usage: kubectl nadmit doctor pod [OPTIONS]"), "{shown}{message}");
    let (code, shown, message) = kubectl(&["nadmit", "audit", "-n", TEAM, "--color", "never"]);
    assert!(code == Some(1) && shown.contains("error[nad/field-type]"), "{shown}{message}");
    let (_, shown, message) = kubectl(&["__complete", "nadmit", "aud"]);
    assert!(shown.starts_with("audit\naudit-log\n:4\n"), "{shown}{message}");
}

/// Findings with a selector or a namespace are those of the whole cluster, letter by letter: facts about other objects are still read.
#[test]
fn selected_objects_get_the_same_verdict() {
    let mut cluster = TestCluster::without_nadmit(OperatorTemplate::Upstream);
    for namespace in ["apps", "other"] {
        cluster.namespace(namespace);
    }
    let labelled = |mut object: Value, team: &str| {
        object["metadata"]["labels"] = json!({ "team": team });
        object
    };
    let add = |name: &str, namespace: &str, team: &str| {
        let network = network(TestNetworkKind::Sriov, name, namespace, &json!({ "vlan": 5 }));
        cluster.jane.create(&TestNetworkKind::Sriov.path(), &labelled(network, team));
    };
    for team in ["a", "b"] {
        add(&format!("drifts-{team}"), "apps", team);
        cluster.jane.wait(&nad_at("apps", &format!("drifts-{team}")), |_| true);
        add(&format!("early-{team}"), "later", team);
        let broken = nad(&format!("broken-{team}"), r#"{"cniVersion":"1.0.0","type":"macvlan","mtu":"9000"}"#);
        cluster.admin.create(&nads("apps"), &labelled(broken, team));
    }
    cluster.admin.create(&nads("other"), &labelled(orphan(), "a"));
    cluster.stop_operator();
    cluster.operator_is_available(1);
    for team in ["a", "b"] {
        change_vlan(&cluster, &format!("drifts-{team}"));
        let network = network(TestNetworkKind::Sriov, &format!("waits-{team}"), "apps", &json!({}));
        cluster.jane.create(&TestNetworkKind::Sriov.path(), &labelled(network, team));
    }
    // Two networks wait, so each of them is told that the operator stopped reconciling.
    for name in ["waits-a", "waits-b", "drifts-b"] {
        let rule = if name == "drifts-b" { "audit/nad-drift" } else { "audit/operator-silent" };
        let wanted = format!("{rule} SriovNetwork/{OPERATOR}/{name}");
        wait(&wanted, || found_with_denials(&cluster).contains(&wanted).then_some(()));
    }
    let audited = |more: &[&str]| documents(&audit(&cluster, "admin", &[&["-o", "json"], more].concat()));
    let all = audited(&[]);
    // The operator gives its NADs no labels.
    let is_of = |source: &str, team: &str| {
        let is_labelled = source.starts_with("SriovNetwork/") || source.contains("/broken-");
        (is_labelled && source.ends_with(&format!("-{team}"))) || (team == "a" && source.ends_with("/orphan"))
    };
    type Selects<'a> = (&'a [&'a str], &'a dyn Fn(&str) -> bool);
    let selects: [Selects<'_>; 7] = [
        (&["-l", "team=a"], &|source: &str| is_of(source, "a")),
        (&["--selector", "team in (a, b)"], &|source: &str| is_of(source, "a") || is_of(source, "b")),
        (&["-l", "team=a,team!=b", "-n", "apps"], &|source: &str| is_of(source, "a") && source.contains("/apps/")),
        (&["-n", OPERATOR], &|source: &str| source.contains(&format!("/{OPERATOR}/"))),
        (&["-n", "other"], &|source: &str| source.contains("/other/")),
        (&["-A"], &|_: &str| true),
        (&["-l", "team=none"], &|_: &str| false),
    ];
    for (arguments, is_selected) in selects {
        let wanted: BTreeMap<_, _> = all.clone().into_iter().filter(|(source, _)| is_selected(source)).collect();
        assert_eq!(wanted.is_empty(), arguments.contains(&"team=none"), "{arguments:?}");
        assert_eq!(audited(arguments), wanted, "{arguments:?}");
    }
    let out = audit(&cluster, "admin", &["-l", "team in a"]);
    assert_eq!(out.status.code(), Some(2), "{}", words(&out));
}

/// The rules of each finding, in a cluster where something is denied.
fn found_with_denials(cluster: &TestCluster) -> BTreeSet<String> {
    rules(&documents(&audit(cluster, "admin", &["-o", "json"])))
}
