//! `nadmit install` and `nadmit uninstall`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use clap::builder::PossibleValue;

use super::connection::{Connection, wait_for};
use super::{CLEAN, complain, print};
use crate::deploy::clients::{Clients, admission_files};
use crate::deploy::{Certificates, Home, Options, audit_only, files, objects, yaml};
use crate::policy::Policy;
use crate::tls::check_client_ca;

impl clap::ValueEnum for Certificates {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Own => "nadmit makes it, and keeps it in a Secret",
            Self::CertManager => "cert-manager makes it",
            Self::OpenShift => "OpenShift's service CA makes it",
            Self::Secret => "the Secret nadmit-tls has it: tls.crt, tls.key and ca.crt",
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}

/// Where nadmit is, or goes.
#[derive(Debug, Args)]
struct Place {
    /// The namespace that nadmit runs in
    #[arg(long, default_value = "nadmit", value_name = "NAME")]
    namespace: String,
    /// The Service in that namespace that leads to nadmit
    #[arg(long, default_value = "nadmit", value_name = "NAME")]
    service: String,
}

impl Place {
    fn home(&self) -> Home {
        Home { namespace: self.namespace.clone(), service: self.service.clone() }
    }
}

/// Print the objects that nadmit consists of in a cluster
///
/// nadmit install | kubectl apply -f -
#[derive(Debug, Args)]
pub(super) struct Install {
    #[command(flatten)]
    place: Place,
    /// The image [default: the one of this version]
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// How many replicas
    #[arg(long, default_value_t = 2, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    replicas: u32,
    /// Who makes the serving certificate
    #[arg(long, value_enum, default_value_t, value_name = "WHO")]
    certificates: Certificates,
    /// The policy file
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Also a ServiceMonitor and a PrometheusRule, for clusters that have these kinds, and a Grafana dashboard
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
    /// Also the right to create NADs, which nadmit uses for dry runs alone: to report who denies a NAD that does not come
    #[arg(long)]
    dry_runs: bool,
    /// The CA, PEM, whose client certificates callers must show; the API server needs the files of --admission-files then
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// The name that must be in the client certificate
    #[arg(long, value_name = "NAME", requires = "client_ca")]
    client_name: Option<String>,
    /// Only write the files with which an API server shows a client certificate, for that directory on each control-plane node
    #[arg(long, value_name = "DIR")]
    admission_files: Option<PathBuf>,
    /// Only the rights that `nadmit audit` and `nadmit doctor` need, which are all to read, and a ServiceAccount that has them
    #[arg(long, conflicts_with_all = ["image", "replicas", "certificates", "policy", "monitoring", "backstop", "dry_runs", "client_ca"])]
    audit_only: bool,
    /// Writes the files that are made from the objects into this directory instead
    #[arg(long, hide = true, value_name = "DIR")]
    generate: Option<PathBuf>,
}

impl Install {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        if let Some(directory) = &self.generate {
            for (path, text) in files::files() {
                let path = directory.join(path);
                fs::create_dir_all(path.parent().unwrap_or(directory))?;
                fs::write(&path, text).with_context(|| path.display().to_string())?;
            }
            return Ok(CLEAN);
        }
        if let Some(directory) = &self.admission_files {
            return write_admission_files(&self.place.home(), directory);
        }
        let usual = Options::default();
        let clients = self.client_ca.as_deref().map(|path| read_clients(path, self.client_name.clone())).transpose()?;
        let policy = match &self.policy {
            Some(path) => {
                let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
                // A broken one would keep every replica from starting.
                let policy = Policy::parse(&text).with_context(|| path.display().to_string())?;
                for warning in policy.warnings() {
                    complain(format_args!("nadmit: {}: {warning}", path.display()));
                }
                text
            }
            None => usual.policy,
        };
        let options = Options {
            home: self.place.home(),
            image: self.image.unwrap_or(usual.image),
            replicas: self.replicas,
            certificates: self.certificates,
            policy,
            monitoring: self.monitoring,
            backstop: self.backstop,
            dry_runs: self.dry_runs,
            clients,
        };
        print(&yaml::stream(&if self.audit_only { audit_only(&options) } else { objects(&options) }))
    }
}

/// The CA of the callers. One that is no use would keep every replica from starting.
fn read_clients(path: &Path, name: Option<String>) -> anyhow::Result<Clients> {
    let mut ca = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    check_client_ca(ca.as_bytes()).with_context(|| path.display().to_string())?;
    if !ca.ends_with('\n') {
        ca.push('\n');
    }
    Ok(Clients { ca, name })
}

fn write_admission_files(home: &Home, directory: &Path) -> anyhow::Result<u8> {
    let there = directory.to_str().filter(|_| directory.is_absolute());
    let there = there.context("--admission-files: the API server takes absolute paths only")?;
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let mut written = String::new();
    for (name, text) in admission_files(home, there) {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        written += &format!("{}\n", path.display());
    }
    print(&written)
}

/// Take nadmit out of a cluster
///
/// First the webhook configurations, so that no write waits for what is going away, then everything that `nadmit install` prints.
#[derive(Debug, Args)]
pub(super) struct Uninstall {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    connection: Connection,
    /// Only the webhook configurations, which no replica can create again; the rest is left to whoever made it
    #[arg(long)]
    registration_only: bool,
}

impl Uninstall {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        wait_for(self.uninstall())
    }

    async fn uninstall(self) -> anyhow::Result<u8> {
        let cluster = self.connection.connect().await?;
        if self.registration_only {
            cluster.unregister().await?;
            return print("nadmit is not registered any more\n");
        }
        cluster.uninstall(self.place.home()).await?;
        print("nadmit is gone\n")
    }
}
