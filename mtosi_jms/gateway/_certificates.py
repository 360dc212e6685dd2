"""Certificates of TLS, from files."""

from __future__ import annotations

import ssl

from mtosi_jms.errors import ConfigError


def load_certificate(context: ssl.SSLContext, certificate: str, key: str | None) -> None:
    """Has one side of TLS show a certificate.

    Args:
        context: of that side.
        certificate: file of the certificate (PEM).
        key: file of its key; None: it is in the same file.

    Raises:
        ConfigError: a file that cannot be used, or a key that wants a password: nobody is there to be asked.
    """
    try:
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:
        where = " and ".join(filter(None, (certificate, key)))
        raise ConfigError(f"certificate: {where}: {error.strerror or error}") from None
