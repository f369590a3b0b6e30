//! `nadmit install`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValue, Resettable};

use super::policy_args::PolicyArgs;
use super::{print, unreadable};
use crate::deploy::clients::{Clients, admission_files};
use crate::deploy::{CertificateSource, Options, ServiceRef, audit_only, objects};
use crate::manifests::PolicyFile;
use crate::tls::check_client_ca;
use crate::yaml::emit;

impl clap::ValueEnum for CertificateSource {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Own => "nadmit creates it and stores it in a Secret",
            Self::CertManager => "cert-manager creates it",
            Self::OpenShift => "OpenShift's service CA creates it",
            Self::Secret => "the Secret nadmit-tls contains it: tls.crt, tls.key and ca.crt",
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}

/// Why `--image` must be given.
const NO_IMAGE: &str = concat!(
    "--image is required, because no image of nadmit is published yet. In a checkout of its source, `docker build -t \
     REGISTRY/nadmit:",
    env!("CARGO_PKG_VERSION"),
    " .` builds one, and so does `make image` without Docker. Push it to a registry that the nodes of the cluster can pull from, \
     and pass its name: --image REGISTRY/nadmit:",
    env!("CARGO_PKG_VERSION")
);

/// The namespace and Service of nadmit.
#[derive(Debug, Args)]
pub(super) struct InstallTarget {
    /// The namespace that nadmit runs in
    #[arg(long, short, default_value = "nadmit", value_name = "NAME")]
    namespace: String,
    /// The Service of nadmit in that namespace
    #[arg(long, default_value = "nadmit", value_name = "NAME")]
    service: String,
}

impl InstallTarget {
    pub(super) fn home(&self) -> ServiceRef {
        ServiceRef { namespace: self.namespace.clone(), service: self.service.clone() }
    }
}

/// Print the manifests of nadmit
///
/// nadmit install --image IMAGE | kubectl apply -f -
// The environment is that of a running nadmit, not of the one who installs it.
#[derive(Debug, Args)]
#[command(mut_arg("policy", |policy| policy.env(Resettable::Reset)))]
pub(super) struct Install {
    #[command(flatten)]
    place: InstallTarget,
    /// The image; none is published yet. `make image` or `docker build` makes one, which you push to where your nodes pull from
    #[arg(long, value_name = "IMAGE", value_parser = NonEmptyStringValueParser::new())]
    image: Option<String>,
    /// The number of replicas
    #[arg(long, default_value_t = 2, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    replicas: u32,
    /// Where the serving certificate comes from
    #[arg(long, value_enum, default_value_t, value_name = "WHO")]
    certificates: CertificateSource,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Also print a ServiceMonitor, a PrometheusRule and a Grafana dashboard, for clusters with these kinds
    #[arg(long)]
    monitoring: bool,
    /// Whether the API server itself denies incomplete NADs and template injection while nadmit is down, by ValidatingAdmissionPolicies
    #[arg(
        long,
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = clap::ArgAction::Set,
        value_name = "BOOL"
    )]
    backstop: bool,
    /// Also grant the permission to create NADs, used only for dry runs that show who denies a missing NAD
    #[arg(long)]
    dry_runs: bool,
    /// The CA (PEM) of required client certificates; the API server then needs the files of --admission-files
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// The name that must be in the client certificate
    #[arg(long, value_name = "NAME", requires = "client_ca")]
    client_name: Option<String>,
    /// Only write the files an API server needs to present a client certificate, for that directory on each control-plane node
    #[arg(long, value_name = "DIR")]
    admission_files: Option<PathBuf>,
    /// Only print a ServiceAccount with the read-only permissions that `nadmit audit` and `nadmit doctor` need
    #[arg(long, conflicts_with_all = ["image", "replicas", "certificates", "monitoring", "backstop", "dry_runs", "client_ca"])]
    audit_only: bool,
}

impl Install {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        if let Some(directory) = &self.admission_files {
            return write_admission_files(&self.place.home(), directory);
        }
        if self.audit_only {
            let pods = self.policy.read()?.pods.is_on();
            return print(&emit::stream(&audit_only(&Options { home: self.place.home(), pods, ..Options::default() })));
        }
        let image = self.image.context(NO_IMAGE)?;
        let usual = Options::default();
        let clients = self.client_ca.as_deref().map(|path| read_clients(path, self.client_name.clone())).transpose()?;
        // Read as a policy, because a broken one would keep every replica from becoming ready.
        let (file, policy) = self.policy.read_with_file()?;
        let options = Options {
            home: self.place.home(),
            image,
            replicas: self.replicas,
            certificates: self.certificates,
            policy: file.map_or(usual.policy, PolicyFile::into_text),
            monitoring: self.monitoring,
            backstop: self.backstop,
            dry_runs: self.dry_runs,
            pods: policy.pods.is_on(),
            clients,
        };
        print(&emit::stream(&objects(&options)))
    }
}

/// Reads the client CA. An invalid one would keep every replica from starting.
fn read_clients(path: &Path, name: Option<String>) -> anyhow::Result<Clients> {
    let mut ca = fs::read_to_string(path).map_err(|error| unreadable("client CA", path, &error))?;
    check_client_ca(ca.as_bytes()).with_context(|| path.display().to_string())?;
    if !ca.ends_with('\n') {
        ca.push('\n');
    }
    Ok(Clients { ca, name })
}

fn write_admission_files(home: &ServiceRef, directory: &Path) -> anyhow::Result<u8> {
    let there = directory.to_str().filter(|_| directory.is_absolute());
    let there = there.context("--admission-files: the API server accepts only absolute paths")?;
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let mut written = String::new();
    for (name, text) in admission_files(home, there) {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        written += &format!("{}\n", path.display());
    }
    print(&written)
}
