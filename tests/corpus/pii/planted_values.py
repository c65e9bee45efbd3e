"""Personal values, each made from its standard or its authority's description, by code of this file alone:
it uses no detector and no check of the package."""

from __future__ import annotations

import random
import re
import string


def planted(rng: random.Random, kind: str) -> tuple[str, str, str]:
    """What stands before a value, the value, and what stands after."""
    if kind == "email":
        if rng.random() < 0.1:
            return "", spelled_email(rng), ""
        before, after = rng.choice(
            [
                ("", ""),
                ("<", ">"),
                ("mailto:", ""),
                ("(", ")."),
                ("", "."),
                ("E-mail: ", ","),
                ("邮箱：", "。"),
                ("'", "'"),
            ]
        )
        return before, email(rng), after
    if kind == "phone":
        which = rng.random()
        if which < 0.35:
            return (
                rng.choice(["", "", "(", "电话", *PHONE_CUES]),
                filled(rng, rng.choice(E164)),
                rng.choice(["", ".", ","]),
            )
        if which < 0.7:
            return (
                rng.choice(["", "", *PHONE_CUES]),
                filled(rng, rng.choice(NATIONAL)),
                rng.choice(["", ".", ";"]),
            )
        if which < 0.8:
            return (
                rng.choice(["电话", "请致电", "手机号是", "打"]),
                filled(rng, "13#########"),
                rng.choice(["请", "联系我们", "。"]),
            )
        return rng.choice(PHONE_CUES), filled(rng, rng.choice(LOCAL)), rng.choice(["", ".", ","])
    if kind == "ip":
        value = ipv4(rng) if rng.random() < 0.7 else ipv6(rng)
        before, after = rng.choice(
            [("", ""), ("from ", ""), ("IP address ", "."), ("ping ", ""), ("http://",
            "/") if "." in value else ("[", "]"),
             ("server at ", ","), ("服务器", "的"), ("", ""), ("(", ")")]
        )  # fmt: skip
        return before, value, after
    if kind == "card":
        number = card(rng)
        if rng.random() < 0.6:
            return (
                rng.choice(["", "card ", "paid with ", "卡号"]),
                grouped_card(number, rng.choice(" -")),
                rng.choice(["", "."]),
            )
        return (
            rng.choice(["credit card ", "Visa ", "card number: ", "Kreditkarte ", "信用卡号", "tarjeta "]),
            number,
            rng.choice(["", "."]),
        )
    if kind == "iban":
        return rng.choice(["", "IBAN ", "IBAN: ", "account ", "账号"]), iban(rng), rng.choice(["", ".", ","])
    if kind == "national_id":
        value, cues = national_id(rng)
        return rng.choice(cues), value, rng.choice(["", ".", ","])
    before, value, after = secret(rng)
    return before, value, after or (before[-1:] if before[-1:] in "'\"" else "")


def digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(string.digits, k=count))


def letters(rng: random.Random, count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(rng.choices(alphabet, k=count))


def filled(rng: random.Random, form: str) -> str:
    """A form with # for any digit and N for 2 to 9 filled in."""
    return re.sub("[#N]", lambda sign: str(rng.randint(2 if sign[0] == "N" else 0, 9)), form)


def email(rng: random.Random) -> str:
    name = rng.choice(
        [
            "anna",
            "li.wei",
            "jean-luc",
            "o_brien",
            "m.rossi",
            "ivan2",
            "x",
            "sales+news",
            "J.Smith",
            "dev42",
            "maria.da.silva",
        ]
    )
    host = rng.choice(
        ["example", "gmail", "uni-bonn", "mail.kyoto-u", "qq", "web3", "alice-bob", "cs.stanford", "müller"]
    )
    return f"{name}@{host}.{rng.choice(['org', 'com', 'de', 'ac.jp', 'cn', 'fr', 'co.uk', 'info', 'museum'])}"


def spelled_email(rng: random.Random) -> str:
    name, host = rng.choice(["anna", "li.wei", "jsmith"]), rng.choice(["example", "debian", "gmail"])
    ending = rng.choice(["org", "com", "de"])
    return rng.choice(
        [f"{name} at {host} dot {ending}", f"{name} [at] {host} [dot] {ending}", f"{name}(at){host}.{ending}"]
    )


E164 = [
    "+1 N12 N34-####",
    "+1-N07-N55-####",
    "+44 20 7### ####",
    "+44 7### ######",
    "+49 30 #######",
    "+49 (0)171 #######",
    "+33 6 ## ## ## ##",
    "+34 6## ## ## ##",
    "+39 06 #### ####",
    "+351 91# ### ###",
    "+48 60# ### ###",
    "+7 (495) ###-##-##",
    "+7 916 ### ## ##",
    "+55 11 9####-####",
    "+86 138 #### ####",
    "+8613#########",
    "+81 3-####-####",
    "+91 98### #####",
    "+82-10-####-####",
    "+4930########",
    "0049 30 #######",
    "+31 6 ########",
    "+46 70 ### ## ##",
    "+41 44 ### ## ##",
    "+886 2 #### ####",
]
NATIONAL = ["(N12) N34-####", "N07-N55-####", "N12.N34.####", "1-800-N55-####", "020 7### ####",
"07### ######", "0161 4## ####",
            "030 / #######", "030/#######", "0171 1######", "(089) 6######", "06 ## ## ## ##",
            "01.4#.##.##.##", "8 (495) ###-##-##",
            "8-916-###-##-##", "(11) 9####-####", "(21) 3###-####", "138 #### ####", "139-####-####",
            "010-6#######", "0755-8#######",
            "03-5###-####", "090-####-####", "0120-###-###", "010-####-####", "6## ## ## ##",
            "91 ### ## ##"]  # fmt: skip
LOCAL = ["N34-####", "13#########", "18#########", "010########", "612######", "91#######", "60#######",
"98########", "333#######",
         "06 #######", "N12N34####", "0171#######", "22 ### ## ##", "601 ### ###", "98### #####",
         "8916#######", "0612345###"]  # fmt: skip
PHONE_CUES = ["Tel: ", "tel. ", "Phone: ", "phone number is ", "Telefon: ", "Tél. : ", "Teléfono: ",
"Telefone: ", "телефон ", "Тел.: ",
              "电话：", "電話:", "手机 ", "携帯 ", "fax ",
              "mobile ", "Handy: ", "cell: ", "WhatsApp "]  # fmt: skip


def ipv4(rng: random.Random) -> str:
    """From blocks that regional registries give to access providers."""
    first = rng.choice([24, 31, 46, 62, 73, 81, 91, 109, 121, 151, 178, 186, 195, 201, 213, 217])
    return f"{first}.{rng.randint(1, 254)}.{rng.randint(0, 255)}.{rng.randint(1, 254)}"


def ipv6(rng: random.Random) -> str:
    prefix = rng.choice(["2a00:1450", "2001:4860", "2400:cb00", "2600:1f18", "2a02:8108", "240e:3a1"])
    groups = [f"{rng.randrange(1, 65536):x}" for _ in range(4)]
    full = ":".join([prefix, *groups])
    return rng.choice(
        [
            f"{prefix}:{rng.randrange(1, 65536):x}::{rng.randrange(1, 65536):x}",
            f"{full}:1:2",
            f"{full}:1:2".upper(),
        ]
    )


def luhn_digit(body: str) -> str:
    """Double every second digit from the right, the sum of all digits is brought to a multiple of ten."""
    total = 0
    for place, digit in enumerate(reversed(body)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


def card(rng: random.Random) -> str:
    prefix, length = rng.choice(
        [
            ("4", 16),
            ("51", 16),
            ("55", 16),
            ("2223", 16),
            ("34", 15),
            ("37", 15),
            ("6011", 16),
            ("3530", 16),
            ("6221", 16),
        ]
    )
    body = prefix + digits(rng, length - 1 - len(prefix))
    return body + luhn_digit(body)


def grouped_card(number: str, mark: str) -> str:
    sizes = (4, 6, 5) if len(number) == 15 else (4, 4, 4, 4)
    parts, position = [], 0
    for size in sizes:
        parts.append(number[position : position + size])
        position += size
    return mark.join(parts)


def iban(rng: random.Random) -> str:
    country, form = rng.choice(
        [
            ("DE", "n" * 18),
            ("GB", "aaaa" + "n" * 14),
            ("FR", "n" * 23),
            ("ES", "n" * 20),
            ("IT", "a" + "n" * 22),
            ("NL", "aaaa" + "n" * 10),
            ("PL", "n" * 24),
            ("CH", "n" * 17),
            ("BE", "n" * 12),
            ("NO", "n" * 11),
        ]
    )
    account = "".join(rng.choice(string.digits if sign == "n" else string.ascii_uppercase) for sign in form)
    as_number = "".join(str(int(sign, 36)) for sign in account + country + "00")
    whole = f"{country}{98 - int(as_number) % 97:02d}{account}"
    return whole if rng.random() < 0.4 else " ".join(whole[at : at + 4] for at in range(0, len(whole), 4))


def date_of_birth(rng: random.Random) -> tuple[int, int, int]:
    return rng.randint(1940, 1999), rng.randint(1, 12), rng.randint(1, 28)


def weighted(body: str, weights: list[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(body, weights, strict=True))


def national_id(rng: random.Random) -> tuple[str, list[str]]:
    """A number and the words that go with it; those without check and form of their own never stand bare."""
    year, month, day = date_of_birth(rng)
    which = rng.choice(
        ["us", "es", "nie", "fr", "de", "pl", "br", "cnpj", "cn", "gb", "nl", "se", "in", "be"]
    )
    if which == "us":
        return f"{rng.randint(100, 665)}-{rng.randint(1, 99):02d}-{rng.randint(1, 9999):04d}", [
            "SSN: ",
            "Social Security number ",
        ]
    if which in ("es", "nie"):
        number = int(digits(rng, 7 if which == "nie" else 8))
        letter = "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23]
        return (
            (f"X{number:07d}{letter}", ["NIE ", "N.I.E.: "])
            if which == "nie"
            else (f"{number:08d}{letter}", ["DNI ", "NIF: ", "con DNI "])
        )
    if which == "fr":
        body = f"{rng.choice('12')}{year % 100:02d}{month:02d}{rng.randint(1, 95):02d}{digits(rng, 6)}"
        key = f"{97 - int(body) % 97:02d}"
        spaced = f"{body[0]} {body[1:3]} {body[3:5]} {body[5:7]} {body[7:10]} {body[10:13]} {key}"
        return rng.choice([body + key, spaced]), ["numéro de sécurité sociale ", "NIR : ", ""]
    if which == "de":
        pool = rng.sample(string.digits, 9)
        body = [*pool, pool[-1]]
        while body[0] == "0" or body[0] == body[1] == body[2]:
            rng.shuffle(body)
        product = 10
        for digit in body:
            total = (int(digit) + product) % 10
            product = (10 if total == 0 else total) * 2 % 11
        number = "".join(body) + str((11 - product) % 10)
        return rng.choice([number, f"{number[:2]} {number[2:5]} {number[5:8]} {number[8:]}"]), [
            "Steuer-ID ",
            "IdNr. ",
            "Steueridentifikationsnummer: ",
        ]
    if which == "pl":
        body = f"{year % 100:02d}{month:02d}{day:02d}{digits(rng, 4)}"
        return body + str(-weighted(body, [1, 3, 7, 9, 1, 3, 7, 9, 1, 3]) % 10), ["PESEL ", "PESEL: "]
    if which == "br":
        body = digits(rng, 9)
        for _ in range(2):
            rest = weighted(body, list(range(len(body) + 1, 1, -1))) % 11
            body += "0" if rest < 2 else str(11 - rest)
        return f"{body[:3]}.{body[3:6]}.{body[6:9]}-{body[9:]}", ["CPF ", "", "CPF nº "]
    if which == "cnpj":
        body = digits(rng, 8) + "0001"
        for weights in ([5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2], [6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]):
            rest = weighted(body, weights) % 11
            body += "0" if rest < 2 else str(11 - rest)
        return f"{body[:2]}.{body[2:5]}.{body[5:8]}/{body[8:12]}-{body[12:]}", ["CNPJ ", ""]
    if which == "cn":
        region = rng.choice(["110105", "310104", "440305", "510107"])
        body = f"{region}{year}{month:02d}{day:02d}{digits(rng, 3)}"
        return body + "10X98765432"[
            weighted(body, [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11
        ], ["身份证号", "身份证号码：", ""]
    if which == "gb":
        number = f"{rng.choice(['AB', 'CE', 'JG', 'PX', 'WM'])}{digits(rng, 6)}{rng.choice('ABCD')}"
        return rng.choice([number, f"{number[:2]} {number[2:4]} {number[4:6]} {number[6:8]} {number[8]}"]), [
            "National Insurance number ",
            "NINO: ",
        ]
    if which == "nl":
        while True:
            body = digits(rng, 8)
            rest = weighted(body, [9, 8, 7, 6, 5, 4, 3, 2]) % 11
            if rest < 10:
                return f"{body}{rest}", ["BSN ", "burgerservicenummer: "]
    if which == "se":
        body = f"{year % 100:02d}{month:02d}{day:02d}{digits(rng, 3)}"
        return f"{body[:6]}-{body[6:]}{luhn_digit(body)}", ["personnummer ", "Personnummer: "]
    if which == "be":
        body = f"{year % 100:02d}{month:02d}{day:02d}{digits(rng, 3)}"
        return f"{body[:2]}.{body[2:4]}.{body[4:6]}-{body[6:]}.{97 - int(body) % 97:02d}", [
            "rijksregisternummer ",
            "",
        ]
    return AADHAAR[rng.randrange(len(AADHAAR))], ["Aadhaar ", "Aadhaar number: "]


# Verhoeff digits worked out with the tables of the dihedral group.
AADHAAR = ["2234 5678 9127", "4999 1234 5674", "8765-0123-4985"]


def secret(rng: random.Random) -> tuple[str, str, str]:
    """What stands before, the secret, what stands after."""
    upper = string.ascii_uppercase
    url_safe = string.ascii_letters + string.digits + "-_"
    password = rng.choice("kTmQzR") + letters(rng, 7) + rng.choice("!#%+") + digits(rng, 3)
    key = letters(rng, 24) + digits(rng, 4) + rng.choice(upper)
    return rng.choice(
        [
            ("key id ", rng.choice(["AKIA", "ASIA"]) + letters(rng, 16, upper + "234567"), ""),
            ("", rng.choice(["ghp_", "gho_", "ghs_"]) + letters(rng, 36), ""),
            ("token: ", f"github_pat_{letters(rng, 22)}_{letters(rng, 59)}", ""),
            ("use ", f"xoxb-{digits(rng, 12)}-{digits(rng, 12)}-{letters(rng, 24)}", ""),
            ('stripe.api_key = "', "sk_live_" + letters(rng, 24), '"'),
            ("key=", "AIza" + letters(rng, 35, url_safe), "&x=1") if rng.random() < 0.5 else ("",
            "glpat-" + letters(rng, 20), ""),
            ("", ".".join(["eyJ" + letters(rng, 30), "eyJ" + letters(rng, 60), letters(rng, 43)]), ""),
            ("Authorization: Bearer ", letters(rng, 40, url_safe), ""),
            (rng.choice(['password = "', "db_password: '", 'PASSWD="', '"password": "']), password, ""),
            (rng.choice(['API_KEY = "', "api_key: '", 'client_secret="', 'access_token = "',
            "SECRET_KEY = '"]), key, ""),
            (rng.choice(["API_KEY=", "export AUTH_TOKEN=", "aws_secret_access_key = "]), key, "\n"),
            (rng.choice(["postgres://app:", "mysql://root:", "https://bot:", "redis://:", "amqp://user1:"]),
            letters(rng, 14), "@db.corp.net/x"),
            ("", key_block(rng), ""),
        ]
    )  # fmt: skip


def key_block(rng: random.Random) -> str:
    kind = rng.choice(["RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "])
    body = "\n".join(
        letters(rng, 64, string.ascii_letters + string.digits + "+/") for _ in range(rng.randint(3, 20))
    )
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----"
