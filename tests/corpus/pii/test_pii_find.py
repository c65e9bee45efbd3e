"""What is personal data and what is not, kind by kind."""

from __future__ import annotations

import itertools

import pytest

from tasks.corpus.pii.find import KINDS, find_personal_data


def found(text: str) -> list[tuple[str, str]]:
    return [(each.kind, text[each.start : each.end]) for each in find_personal_data(text)]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("Write to ann@example.org.", "ann@example.org"),
        ("<a href='mailto:Ann.Li+news@Mail.Example.co.uk'>", "Ann.Li+news@Mail.Example.co.uk"),
        ("x='ann@example.org'", "ann@example.org"),
        ("o'brien@example.org", "o'brien@example.org"),
        ("邮箱ann@example.cn。", "ann@example.cn"),
        ("info@müller.de", "info@müller.de"),
        ("ann at example dot org", "ann at example dot org"),
        ("ann [at] example [dot] org", "ann [at] example [dot] org"),
    ],
)
def test_an_email_address_is_found_without_what_surrounds_it(text: str, address: str):
    assert found(text) == [("email", address)]


@pytest.mark.parametrize(
    "text",
    ["git clone git@github.com:a/b.git", "ssh://ann@example.org/x", "scp f ann@example.org:/tmp",
    "user@localhost", "@decorator.name",
     "icon@2x.png", "getty@tty1.service", "look at the dot in the middle",
     "he laughed at the dot com bubble", "package@1.2.3"],
)  # fmt: skip
def test_logins_units_files_and_decorators_are_no_email_addresses(text: str):
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("call +49 (0)30 1234567 now", "+49 (0)30 1234567"),
        ("(212) 555-0123", "(212) 555-0123"),
        ("电话13812345678请联系", "13812345678"),
        ("電話：０３－１２３４－５６７８", "０３－１２３４－５６７８"),
        ("Telefon: 1234567", "1234567"),
        ("тел. 8 (495) 123-45-67", "8 (495) 123-45-67"),
        ("EPP phone +1.2125550123", "+1.2125550123"),
    ],
)
def test_a_phone_number_is_found_in_the_forms_of_many_countries(text: str, number: str):
    assert found(text) == [("phone", number)]


@pytest.mark.parametrize(
    "text",
    ["13812345678 bytes", "2024-01-15", "tel 2024-01-15", "ISBN 978-3-16-148410-0", "Decimal('+35236450.6')",
    "+1.4142135623", "20240115123000",
     "1700000000000", "part no. 212-555-0123", "$ 212-555-0123", "016-20-1187", "hotel 1234567",
     "0021 8185 4998 57"],
)  # fmt: skip
def test_dates_books_prices_and_bare_numbers_are_no_phone_numbers(text: str):
    assert found(text) == []


@pytest.mark.parametrize(
    "address", ["81.12.45.200", "8.8.4.4", "2a00:1450:4001:81b::200e", "2A00:1450:4001:81B:0:0:0:200E"]
)
def test_a_global_ip_address_is_found_beside_a_word_for_it(address: str):
    assert found(f"connected from the host {address}.") == [("ip", address)]


@pytest.mark.parametrize(
    "text",
    ["version 81.12.45.200", "v8.8.4.4", ">= 1.2.3.140", "section 3.4.5.6", "3.4.5.6 Title of it",
    "§ 130.2.3.4", "1.3.6.1.4.1.311", "foo-1.2.3.140.tar",
     "foo_1.2.3.140-1_amd64", "host 255.255.240.0", "host 127.0.0.1", "host 192.168.1.200",
     "host 203.0.113.9", "host 224.0.0.251", "81.12.44.0/24",
     "host 256.1.1.1", "12:34:56", "00:1a:2b:3c:4d:5e", "std::vector", "x[2000::2]", "::1", "fe80::1",
     "2001:db8::1:2"],
)  # fmt: skip
def test_versions_sections_and_addresses_of_nobody_stay(text: str):
    assert found(text) == []


@pytest.mark.parametrize(
    "text", ["4111 1111 1111 1111", "3782-822463-10005", "visa 4111111111111111", "卡号5555555555554444。"]
)
def test_a_card_number_is_found_in_groups_or_beside_a_word_for_it(text: str):
    assert [kind for kind, _ in found(text)] == ["card"]


@pytest.mark.parametrize(
    "text",
    ["4111 1111 1111 1112", "4111111111111111", "card 41111111-1111-1111-4111-111111111111",
    "card 1700000000000", "card 1111111111111117",
     "4111 1111 1111 1111 1111", "sha 4111111111111111a"],
)  # fmt: skip
def test_a_uuid_a_time_or_a_bare_run_of_digits_is_no_card_number(text: str):
    assert found(text) == []


def test_each_of_two_international_numbers_in_a_row_is_found():
    assert [kind for kind, _ in found("+49 30 1234567 +49 30 7654321")] == ["phone", "phone"]


def test_an_iban_needs_its_length_its_structure_and_its_check():
    assert found("DE89 3704 0044 0532 0130 00 and GB82WEST12345698765432.") == [
        ("iban", "DE89 3704 0044 0532 0130 00"),
        ("iban", "GB82WEST12345698765432"),
    ]
    assert found("DE88 3704 0044 0532 0130 00, DE89 3704 0044 0532 0130, XX82WEST12345698765432") == []


@pytest.mark.parametrize(
    "text",
    ["SSN 123-45-6789", "DNI 12345678Z", "NIE X1234567L", "RSSMRA85T10A562S", "NIR 2 55 08 14 168 025 38",
    "Steuer-ID 86 095 742 719",
     "PESEL 44051401359", "529.982.247-25", "11.222.333/0001-81", "身份证11010519491231002X",
     "NINO AB123456C",
     "BSN 111222333",
     "personnummer 811218-9876", "85.07.30-033.28", "131052-308T", "Aadhaar 2234 5678 9127",
     "SIN: 130 692 544"],
)  # fmt: skip
def test_a_national_id_is_found_by_its_check_and_if_that_is_weak_by_a_word(text: str):
    assert [kind for kind, _ in found(text)] == ["national_id"]


@pytest.mark.parametrize(
    "text",
    ["123-45-6789", "SSN 666-45-6789", "12345678Z", "DNI 12345678A", "RSSMRA85T10A562T", "44051401359",
    "529.982.247-24", "11010519491231002X0",
     "110105194912310021", "AB123456C"],
)  # fmt: skip
def test_a_national_id_with_a_wrong_check_or_a_weak_one_without_a_word_stays(text: str):
    assert found(text) == []


def test_a_private_key_block_is_one_secret():
    block = (
        "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA75mq\n" * 9 + "-----END RSA PRIVATE KEY-----"
    )
    assert found(f"key:\n{block}\n") == [("secret", block)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('password = "Tr0ub4dor&3x"', "Tr0ub4dor&3x"),
        ("API_KEY=9f8Kq2mZx7Lw4Rt6Bv1N\n", "9f8Kq2mZx7Lw4Rt6Bv1N"),
        ("postgres://app:s3crXt9w@db.example.com/x", "s3crXt9w"),
        ("Authorization: Bearer 9f8Kq2mZx7Lw4Rt6Bv1Nq0", "9f8Kq2mZx7Lw4Rt6Bv1Nq0"),
    ],
)
def test_of_an_assignment_a_url_or_a_header_only_the_value_is_a_secret(text: str, value: str):
    assert found(text) == [("secret", value)]


@pytest.mark.parametrize(
    "text",
    ['password = "changeme"', 'api_key = "<your key>"', 'token = "xxxxxxxxxxxxxxxxxxxx"',
    "password = getpass.getpass()", "AKIAIOSFODNN7EXAMPLE",
     'password = "${DB_PASSWORD_1}"', "http://user:password@example.org/", "access key = sorted_by_name_2",
     "-----BEGIN CERTIFICATE-----\nMIIE"],
)  # fmt: skip
def test_what_stands_for_a_secret_in_documentation_is_none(text: str):
    assert found(text) == []


def test_of_two_that_overlap_the_more_specific_stands():
    assert found("mysql://root:p4ssWx99@mail.example.org") == [("secret", "p4ssWx99")]
    assert found("tel 529.982.247-25") == [("national_id", "529.982.247-25")]


def test_only_the_kinds_that_are_asked_for_are_found():
    text = "ann@example.org +49 30 1234567"
    assert [each.kind for each in find_personal_data(text, ["phone"])] == ["phone"]
    with pytest.raises(ValueError, match="no kind of personal data: name; there are email"):
        find_personal_data(text, ["name"])


@pytest.mark.parametrize(
    "piece",
    ["1", ".", "1.", "1 ", "1-", "a@", "a@a.", "2a00:", ":", "-----BEGIN PRIVATE KEY-----", "eyJ", "://a:",
    'password="', "tel 123456 ", "+4", "(0",
     "a(at)", "a at a dot ", "A1", "GB82 ", "İ"],
)  # fmt: skip
def test_hostile_text_ends_soon_and_has_nothing(piece: str):
    assert {each.kind for each in find_personal_data(piece * (100_000 // len(piece)))} <= {"phone"}


def test_every_kind_is_found_in_order_and_apart():
    text = (
        "SSN 123-45-6789, ann@example.org, +49 30 1234567, 4111 1111 1111 1111, DE89370400440532013000, "
        "81.12.45.200, ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    )
    finds = find_personal_data(text)
    assert {each.kind for each in finds} == set(KINDS)
    assert all(one.end <= other.start for one, other in itertools.pairwise(finds))
