"""The terminator: it speaks TLS in front of a port. terminator.py PORT CERTIFICATE [mutual]

The servers in the wheels are built without TLS, so the tests put this before them. CERTIFICATE names one that
certificates.py made; `mutual` demands a client's that ca.pem signed. Prints its own port; ends with standard input.
"""

import asyncio
import contextlib
import ssl
import sys
from pathlib import Path

CERTIFICATES = Path(__file__).resolve().parent.parent / ".venv/certificates"


async def copy(reader, writer):
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()


async def main(port, certificate, mutual):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=CERTIFICATES / "ca.pem")
    context.load_cert_chain(CERTIFICATES / f"{certificate}.pem", CERTIFICATES / f"{certificate}.key")
    context.verify_mode = ssl.CERT_REQUIRED if mutual else ssl.CERT_OPTIONAL

    async def serve(reader, writer):
        try:
            upstream = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, upstream[1]), copy(upstream[0], writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    # Handshakes that fail are what some tests want to see, not news.
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], "mutual" in sys.argv[3:]))
