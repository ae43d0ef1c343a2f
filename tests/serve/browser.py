"""A headless Chromium, driven over its debugging protocol."""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from server import PATIENCE


def find():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    def __init__(self, width=1200, height=1000, dark=False):
        import websocket

        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # its helpers may outlive it by a moment
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--remote-allow-origins=*",
                 f"--window-size={width},{height}", "--user-data-dir=" + self.folder.name, "about:blank"]
        self.process = subprocess.Popen([find(), *flags], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            at = re.search(r"ws://127.0.0.1:(\d+)/", line)
            if at:
                break
        else:
            raise RuntimeError("no browser")
        from urllib.request import urlopen

        with urlopen(f"http://127.0.0.1:{at[1]}/json", timeout=20) as r:
            page = next(p for p in json.load(r) if p["type"] == "page")
        self.socket = websocket.create_connection(page["webSocketDebuggerUrl"], timeout=60)
        self.count, self.errors = 0, []
        self.call("Runtime.enable")
        if dark:
            self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])

    def call(self, method, **params):
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": params}))
        while True:
            got = json.loads(self.socket.recv())
            if got.get("method") == "Runtime.exceptionThrown":
                self.errors.append(got["params"]["exceptionDetails"]["text"])
            if got.get("id") == self.count:
                if "error" in got:
                    raise RuntimeError(got["error"])
                return got["result"]

    def value(self, script):
        got = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(got["exceptionDetails"])
        return got["result"].get("value")

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < end:
            if self.value(condition):
                return
            time.sleep(0.1)
        raise RuntimeError("waited in vain for " + condition)

    def key(self, key, code):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]))

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait(20)
        self.process.stderr.close()
        self.folder.cleanup()


if __name__ == "__main__":
    import sys

    b = Browser(dark="dark" in sys.argv)
    b.go(sys.argv[1])
    b.value("document.getElementById('tokens').value = 60; document.getElementById('run').click()")
    b.wait("document.getElementById('status').textContent.match(/Done|Failed/)", 200)
    print(b.value("document.body.innerText"), b.errors)
    b.screenshot(os.path.abspath(sys.argv[2]))
    b.close()
