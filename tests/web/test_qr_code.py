"""QR codes of links. The digests are those of the `qrcode` library with the same mask; `zxing` reads these codes."""

import pytest

from holdfast.core import digest
from holdfast.core.errors import InvalidInput
from holdfast.web.qr_code import qr_code, qr_matrix

LINK = "https://box.example/#enter=0123456789abcdefghijklmnopqrstuv"


def text_of(length: int) -> str:
    return (LINK * 4)[:length]


@pytest.mark.parametrize(
    ("length", "version", "wanted"),
    [
        (1, 1, "1cdac062606345909209927091c6989fe13362a381eb9062fb163a43c04c9c1b"),
        (14, 1, "24e6c890e93a604e22955739a72cbca6e6ce50aab25d24d985c4b390d51f53fa"),
        (26, 2, "9f4cd26f43a32958b0784fd8b4df80ddc96db461412054f04c86f4b783fbe91d"),
        (59, 4, "2cb8f6b10d93d8f68f8960d51d5559c1ec9d606026182edbdcd960dcd112c6e4"),
        (84, 5, "2aa4e5d9174c4330d51d01a879e183007143991f7c02fdbbfb62f50292ed41f7"),
        (100, 6, "3e342de035881fb2ebecaeda130563502d49de41cf51653a037ba5bd21a9df00"),
        (122, 7, "2c534fb54709838f69255a44b541672ce3660724e09b2d64ecba53a4f6eff780"),
        (152, 8, "3f1d204cb054ec869f570b89e6fd6f54748b7e1b76053ed655f4a59c59c1ed81"),
        (180, 9, "034b64cf0507227bb15d284d114143656992aa5a57e88ccccefc23c6d9fff51c"),
        (213, 10, "b34d686e4fc9b6e3b958f37f26ab2c3f17a902c7978fa07e1bacf87ba601a5eb"),
    ],
)
def test_a_code_is_the_one_that_readers_know(length: int, version: int, wanted: str) -> None:
    matrix = qr_matrix(text_of(length))
    assert len(matrix) == 17 + 4 * version
    assert digest([["1" if each else "0" for each in row] for row in matrix]) == wanted


def test_a_code_is_drawn_with_its_quiet_zone() -> None:
    code, matrix = qr_code(LINK), qr_matrix(LINK)
    assert code.size == len(matrix) + 8
    assert code.path.startswith("M4 4h7v1h-7z")


def test_a_text_that_is_too_long_is_refused() -> None:
    qr_code("x" * 213)
    with pytest.raises(InvalidInput):
        qr_code("x" * 214)
