//! HTTPS: the certificate and its key, reloaded on request.

use std::path::Path;
use std::sync::Arc;

use axum_server::tls_rustls::RustlsConfig;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tyrex::{Error, Result};

use crate::config::TlsFiles;

/// Reads certificate and key.
pub(crate) fn load(files: &TlsFiles) -> Result<RustlsConfig> {
    Ok(RustlsConfig::from_config(Arc::new(read(files)?)))
}

/// Reloads them; keeps the old ones if the new ones are invalid.
pub(crate) fn reload(config: &RustlsConfig, files: &TlsFiles) -> Result<()> {
    config.reload_from_config(Arc::new(read(files)?));
    Ok(())
}

fn read(files: &TlsFiles) -> Result<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, pem::Error>>)
        .map_err(|error| unreadable(&files.certificate, "certificate", error))?;
    if chain.is_empty() {
        return Err(wrong(&files.certificate, "no certificate in it, expected PEM".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| unreadable(&files.key, "private key", error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| wrong(&files.certificate, format!("cannot be used: {error}")))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn unreadable(path: &Path, what: &str, error: pem::Error) -> Error {
    match error {
        pem::Error::Io(source) => Error::io("read", path)(source),
        pem::Error::NoItemsFound => wrong(path, format!("no {what} in it, expected PEM")),
        other => wrong(path, format!("not PEM: {other}")),
    }
}

fn wrong(path: &Path, problem: String) -> Error {
    Error::ParamFile { file: path.to_owned(), problem }
}
