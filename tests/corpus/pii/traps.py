"""What only looks like personal data."""

from __future__ import annotations

import random

from tests.corpus.pii.planted_values import digits, filled, letters


def trap(rng: random.Random) -> str:
    n = rng.randint
    four = f"{n(1, 19)}.{n(0, 19)}.{n(0, 19)}.{n(1, 9)}"
    isbn = f"978-{n(0, 9)}-{digits(rng, 4)}-{digits(rng, 4)}-{n(0, 9)}"
    uuid = "-".join(letters(rng, size, "0123456789abcdef") for size in (8, 4, 4, 4, 12))
    numeric_uuid = "-".join(digits(rng, size) for size in (8, 4, 4, 4, 12))
    return rng.choice(
        [
            f"version {four}", f"v{four}", f"release {n(1, 20)}.{n(0, 99)}.{n(100, 255)}.{n(0, 99)}",
            f"section {four}",
            f"\n{four} Overview of methods\n", f"\n  {four}. The next step\n", f"chapter {four}",
            f"§ {four}", f"Figure {four}:",
            f"foo_{four}-{n(1, 9)}_amd64.deb", f"foo-{four}.tar.gz", f">= {four}",
            f"OID 1.3.6.1.4.1.{n(1, 50000)}.{n(1, 9)}",
            f"1.3.6.1.{n(1, 9)}.{n(1, 9)}.{n(1, 200)}", f"1.2.840.113549.1.1.{n(1, 20)}",
            f"netmask 255.255.{n(0, 1) * 255}.0",
            f"127.0.0.{n(1, 9)}", f"192.168.{n(0, 255)}.{n(1, 254)}",
            f"10.{n(0, 255)}.{n(0, 255)}.{n(1, 254)}", f"0.0.0.0:{n(1000, 9999)}",
            f"ISBN {isbn}", isbn, isbn.replace("-", ""), f"ISSN {digits(rng, 4)}-{digits(rng, 4)}",
            f"ISBN 0-{digits(rng, 3)}-{digits(rng, 5)}-{n(0, 9)}",
            f"{n(1_000_000_000, 1_799_999_999)}", f"{n(1_000_000_000_000, 1_799_999_999_999)}",
            f"{n(10**18, 17 * 10**17)}"[:19],
            f"{n(1900, 2030)}-{n(1, 12):02d}-{n(1, 28):02d}T{n(0, 23):02d}:{n(0, 59):02d}:00+0100",
            f"{n(1, 28)}.{n(1, 12)}.{n(1950, 2030)}",
            f"{n(1, 12):02d}/{n(1, 28):02d}/{n(1950, 2030)}", f"{n(1950, 2030)}{n(1, 12):02d}{n(1, 28):02d}",
            f"{n(1950, 1999)}-{n(2000, 2030)}",
            f"{n(1950, 2030)}{n(1, 12):02d}{n(1, 28):02d}{n(0, 23):02d}{n(0, 59):02d}{n(0, 59):02d}", uuid,
            numeric_uuid, uuid.upper(),
            letters(rng, 40, "0123456789abcdef"), letters(rng, 64, "0123456789abcdef"), digits(rng, 32),
            f"sha256:{letters(rng, 64, '0123456789abcdef')}",
            f"$ {n(1, 999)},{digits(rng, 3)},{digits(rng, 3)}.{digits(rng, 2)}", f"€{n(100000, 9999999)}",
            f"{n(1, 99)} {digits(rng, 3)} {digits(rng, 3)} EUR",
            ":".join(letters(rng, 2, "0123456789abcdef") for _ in range(6)),
            f"{n(0, 23):02d}:{n(0, 59):02d}:{n(0, 59):02d}", "std::vector<int>", "x[1::2]", "::1",
            f"fe80::{n(1, 9999)}", f"2001:db8::{n(1, 9999)}", "a::b::c",
            f"{n(1, 89)}.{digits(rng, 6)}, -{n(1, 179)}.{digits(rng, 6)}", f"+{n(1, 89)}.{digits(rng, 8)}",
            f"pp. {n(100, 500)}-{n(501, 999)}", f"pages {n(1000, 1500)}–{n(1501, 1999)}",
            f"part no. {digits(rng, 3)}-{digits(rng, 3)}-{digits(rng, 4)}",
            f"P/N {filled(rng, 'N12-N34-####')}", f"model AB-{digits(rng, 3)}-{digits(rng, 4)}",
            f"order #{digits(rng, 10)}", f"0x{letters(rng, 8, '0123456789abcdef')}",
            f"error code {digits(rng, 8)}", f"port {n(1024, 65535)}", f"bug {digits(rng, 7)}",
            f"{n(10**9, 10**11)} bytes", f"{digits(rng, 3)}-{digits(rng, 2)}-{digits(rng, 4)}",
            f"{digits(rng, 8)}", f"{digits(rng, 11)}", f"{digits(rng, 9)}", f"{digits(rng, 16)}",
            f"3.14159265358979{digits(rng, 4)}", f"1e{n(1, 300)}",
            "git@github.com:owner/repository.git", "user@localhost", "@decorator", "root@host",
            "icon@2x.png", "getty@tty1.service", "foo@1.2.3", "me at home",
            'password = "changeme"', "password=getpass.getpass()", 'api_key = "<your key>"',
            'token = "xxxxxxxxxxxxxxxxxxxx"', "secret = os.environ['APP_SECRET_KEY2']",
            'password: "${DB_PASSWORD}"', "tokens: 1234567890", "https://user@example.org/x",
            "http://user:password@example.org", "key = sorted_by_name_2",
            "-----BEGIN CERTIFICATE-----", f"DE{digits(rng, 20)}",
            f"GB00 ABCD {digits(rng, 4)} {digits(rng, 4)} {digits(rng, 4)} {digits(rng, 2)}",
        ]
    )  # fmt: skip
