"""TLS certificates from files."""

from __future__ import annotations

import ssl

from mtosi_jms.errors import ConfigError


def load_certificate(context: ssl.SSLContext, certificate: str, key: str | None) -> None:
    """Loads the certificate that one side of TLS presents. `key`: file of its key; None: the key is in the
    certificate's file. Raises ConfigError: a file cannot be used, or the key needs a password, which nobody is there to
    enter."""
    try:
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:
        where = " and ".join(filter(None, (certificate, key)))
        raise ConfigError(f"certificate: {where}: {error.strerror or error}") from None
