"""Certificates: it makes those of the TLS tests. certificates.py DIRECTORY

ca.pem signed all of them: server (localhost and 127.0.0.1), elsewhere (the name of another host), expired, and
client. Each has NAME.pem and NAME.key. stranger.pem is a certificate authority that signed none.
"""

import sys
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NOW = datetime.now(timezone.utc)
PAST, FUTURE = NOW - timedelta(days=30), NOW + timedelta(days=3650)
LOCAL = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]


def usage(**allowed):
    names = "digital_signature content_commitment key_encipherment data_encipherment key_agreement"
    names += " key_cert_sign crl_sign encipher_only decipher_only"
    return x509.KeyUsage(**{name: allowed.get(name, False) for name in names.split()})


SIGNS = usage(key_cert_sign=True, crl_sign=True)
ENCRYPTS = usage(digital_signature=True)


def subject(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def certificate(name, hosts=(), signer=None, until=FUTURE):
    """A key and its certificate, signed by `signer` (a pair like the returned one) or by itself, as an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer_key, issuer = (signer[0], signer[1].subject) if signer else (key, subject(name))
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(PAST)
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(SIGNS if signer is None else ENCRYPTS, critical=True)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    return key, builder.sign(issuer_key, hashes.SHA256())


def write(directory, name, pair):
    key, signed = pair
    (directory / f"{name}.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (directory / f"{name}.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


def main(directory):
    directory.mkdir(parents=True, exist_ok=True)
    authority = certificate("locktender test authority")
    write(directory, "ca", authority)
    write(directory, "server", certificate("server", LOCAL, authority))
    write(directory, "elsewhere", certificate("elsewhere", [x509.DNSName("elsewhere.invalid")], authority))
    write(directory, "expired", certificate("expired", LOCAL, authority, until=NOW - timedelta(days=1)))
    write(directory, "client", certificate("client", [x509.DNSName("client")], authority))
    write(directory, "stranger", certificate("a stranger's authority"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
