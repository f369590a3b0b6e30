//! Arguments of the certificate Secret.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::serve::duration;
use crate::cluster::client::ServiceRef;
use crate::cluster::identity::certificates::Settings;
use crate::tls::Lifetimes;
use crate::tls::token::Schedule;

/// The certificate Secret; the hidden arguments are for tests.
#[derive(Debug, Args)]
pub(super) struct Secret {
    /// The Secret in nadmit's namespace with a CA and a certificate, which the replicas create and renew themselves
    #[arg(long, env = "NADMIT_TLS_SECRET", value_name = "NAME", conflicts_with_all = ["tls_cert", "tls_key", "cert_dir"])]
    tls_secret: Option<String>,
    #[arg(long, hide = true, value_name = "TIME", value_parser = duration)]
    ca_lifetime: Option<Duration>,
    #[arg(long, hide = true, value_name = "TIME", value_parser = duration)]
    leaf_lifetime: Option<Duration>,
    #[arg(long, hide = true, value_name = "TIME", value_parser = duration)]
    settle: Option<Duration>,
    #[arg(long, hide = true, value_name = "TIME", allow_hyphen_values = true)]
    clock_offset: Option<jiff::SignedDuration>,
}

/// The longest that a token is accepted.
const TOKEN_LIFETIME: Duration = Duration::from_secs(6 * 3600);

impl Secret {
    /// Whether there is a Secret with the certificate.
    pub(super) fn is_named(&self) -> bool {
        self.tls_secret.is_some()
    }

    /// The lifetime of tokens: as long as certificates, but at most a few hours. While nadmit is unreachable, the API server
    /// shows the path to whoever writes a NAD.
    pub(super) fn token_schedule(&self) -> Schedule {
        let Lifetimes { leaf, settle, .. } = self.lifetimes();
        Schedule { lifetime: leaf.min(TOKEN_LIFETIME), settle }
    }

    fn lifetimes(&self) -> Lifetimes {
        let usual = Lifetimes::default();
        Lifetimes {
            ca: self.ca_lifetime.unwrap_or(usual.ca),
            leaf: self.leaf_lifetime.unwrap_or(usual.leaf),
            settle: self.settle.unwrap_or(usual.settle),
        }
    }

    /// How certificates are kept in the Secret, if there is one.
    pub(super) fn settings(&self, home: ServiceRef, client_ca: Option<PathBuf>) -> Option<Settings> {
        let lifetimes = self.lifetimes();
        let clock_offset = self.clock_offset.unwrap_or_default().as_secs();
        self.tls_secret.clone().map(|secret| Settings { home, secret, lifetimes, client_ca, clock_offset })
    }
}
