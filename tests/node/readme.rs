//! The commands of README.md, each as it is written there and in its order, in a directory that begins with little more than the examples, and on
//! a cluster with pods.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::files::BUSYBOX;
use super::on_a_node;
use crate::harness::run;
use crate::markdown::blocks;

/// Commands that do not run here: they build nadmit, or wait for Ctrl-C. `make test` has run the first half of itself by now.
const ELSEWHERE: [&str; 3] = ["cargo install ", "cargo run --release -- serve", "make test"];

/// Commands that find something, so that they exit with 1: the example has mistakes, and its network has no operator.
const FINDING: [&str; 8] = [
    "nadmit check examples/telco.yaml",
    "nadmit check --diff .",
    "nadmit check --fix manifests/",
    "nadmit audit",
    "nadmit audit --output html=audit.html",
    "nadmit doctor telco-mgmt",
    "nadmit doctor pod web-0 --namespace apps",
    "nadmit explain pod web-0 --namespace apps",
];

/// The command lines in the console blocks of README.md.
fn commands(readme: &str) -> Vec<String> {
    let console = blocks(readme).into_iter().filter(|(language, _)| language == "console");
    let lines = console.flat_map(|(_, text)| {
        let joined = text.replace("\\\n", " ");
        joined.lines().filter_map(|line| Some(line.strip_prefix("$ ")?.to_owned())).collect::<Vec<_>>()
    });
    lines.collect()
}

#[test]
fn the_commands_of_the_readme_work_in_its_order() {
    on_a_node(|node| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let readme = fs::read_to_string(root.join("README.md")).unwrap();
        let home = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let example = fs::read_to_string(root.join("examples/telco.yaml")).unwrap();
        file("examples/telco.yaml", &example);
        file("manifests/network.yaml", &example);
        file("my-chart/Chart.yaml", "apiVersion: v2\nname: my-chart\nversion: 1.0.0\n");
        file(
            "my-chart/templates/network.yaml",
            "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {name: {{ .Release.Name }}}\nspec:\n  config: '{\"cniVersion\":\"1.0.0\",\"type\":\"bridge\",\"ipam\":{\"type\":\"dhcp\"}}'\n",
        );
        let bin = home.path().join("bin");
        fs::create_dir(&bin).unwrap();
        symlink(env!("CARGO_BIN_EXE_nadmit"), bin.join("nadmit")).unwrap();
        for name in ["kubectl", "helm"] {
            symlink(node.cluster.bin.join(name), bin.join(name)).unwrap();
        }
        // What the reader has: the kind of reports, the networks of the example, and a pod that uses one of them.
        let crds = node.cluster.bin.join("crds-of-others");
        for words in
            [["apply", "--server-side", "-f", crds.to_str().unwrap()].as_slice(), &["create", "namespace", "apps"]]
        {
            let out = node.cluster.kubectl("admin", words, "");
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        }
        let out = node.cluster.kubectl("admin", &["apply", "-f", "-"], &example);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let pod = json!({ "metadata": { "name": "web-0", "annotations": { "k8s.v1.cni.cncf.io/networks": "telco-mgmt" } },
            "spec": { "containers": [{ "name": "c", "image": BUSYBOX }] } });
        node.cluster.admin.create("/api/v1/namespaces/apps/pods", &pod);

        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let image = format!("docker.io/library/nadmit:{}", env!("CARGO_PKG_VERSION"));
        let mut ran = 0;
        for line in commands(&readme) {
            if ELSEWHERE.iter().any(|start| line.starts_with(start)) {
                continue;
            }
            println!("$ {line}");
            let mut shell = Command::new("bash");
            shell.args(["-o", "pipefail", "-c", &line.replace("IMAGE", &image)]).current_dir(home.path());
            shell.env_clear().env("PATH", &path).env("HOME", home.path());
            shell.env("KUBECONFIG", node.cluster.kubeconfig("admin"));
            let out = run(shell);
            let shown = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
            let command = line.split(" #").next().unwrap_or_default().trim();
            let wanted = i32::from(FINDING.contains(&command));
            assert_eq!(out.status.code(), Some(wanted), "{line}\n{shown}");
            ran += 1;
        }
        assert!(ran >= 10, "only {ran} commands");
        assert!(fs::read_to_string(home.path().join("audit.html")).unwrap().contains("<html"));
    });
}
