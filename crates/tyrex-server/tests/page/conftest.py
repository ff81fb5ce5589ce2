"""The real program, a real Chromium, and what no view may do: fail in the console or go outside."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = Path(os.environ.get("TYREX_PROGRAM", ROOT / "target/debug/tyrex"))
MODELS = 12
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Server:
    """`tyrex serve` on a port of its own, which it keeps when it is started again."""

    def __init__(self, folder: Path, *arguments: str):
        self.folder = folder
        self.arguments = arguments
        self.port = 0
        self.start()

    def start(self):
        command = [PROGRAM, "serve", *self.arguments]
        command += ["--port", str(self.port), "--ledger", str(self.folder / "ledger.db")]
        self.process = subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        said = []
        for line in self.process.stdout:
            said.append(line)
            address = re.search(r"http://([\w.]+):(\d+)", line)
            if address:
                self.port = int(address[2])
                break
        else:
            raise RuntimeError(f"{command} ended: {''.join(said)}")
        # The rest is not read; a full pipe would stop the program.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(timeout=20)

    def get(self, path):
        with urllib.request.urlopen(self.address + path, timeout=30) as answer:
            return json.load(answer)

    def until_trained(self):
        """Waits for the retrained models of the active model."""
        for _ in range(600):
            listed = self.get("/v1/models")
            states = {model["id"]: model["ensemble"]["state"] for model in listed["models"]}
            if states and states.get(listed["active"]) != "training":
                return
            time.sleep(0.1)
        raise TimeoutError("the retrained models are not ready after a minute")


# The network of earlier versions, which rejects the applicants that the tests know.
TRAINING = ("--epochs", "50", "--l2", "0", "--early-stopping", "none")


def german(folder, *arguments, models=MODELS, training=TRAINING):
    return Server(folder, "--dataset", "german", "--models", str(models), *training, *arguments)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = german(tmp_path_factory.mktemp("server"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def trained(server):
    server.until_trained()
    return server


@pytest.fixture(scope="session")
def browser():
    program = shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


class Watch:
    """What a page must not do."""

    def __init__(self, page: Page, address: str):
        self.troubles = []
        self.expected = []
        page.on("pageerror", lambda error: self.troubles.append(f"exception: {error}"))
        page.on("console", self.console)
        page.on("request", lambda request: self.request(request, address))

    def console(self, message):
        if message.type in ("error", "warning"):
            self.troubles.append(f"{message.type}: {message.text}")

    def request(self, request, address):
        if not request.url.startswith((address, "data:", "blob:")):
            self.troubles.append(f"a request to {request.url}")

    def expect(self, text):
        """Chromium itself writes of failed requests; those a test provokes are expected."""
        self.expected.append(text)

    def check(self):
        left = [one for one in self.troubles if not any(text in one for text in self.expected)]
        assert left == []


@pytest.fixture
def make_page(browser, trained):
    """Makes pages of any size and colour scheme, and looks at their troubles in the end."""
    contexts, watches = [], []

    def make(fragment="", *, width=1280, height=900, server=trained, **settings):
        context = browser.new_context(viewport={"width": width, "height": height}, **settings)
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.watch = Watch(page, server.address)
        watches.append(page.watch)
        page.goto(f"{server.address}/{fragment}")
        return page

    yield make
    for context in contexts:
        context.close()
    for watch in watches:
        watch.check()


@pytest.fixture
def page(make_page):
    return make_page("#applicant?row=5")
