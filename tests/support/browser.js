// Opens a page in headless Chromium and runs an expression there: node browser.js PAGE EXPRESSION [WIDTH SCREENSHOT]
// Prints {value, thrown, logged} as JSON. The DevTools protocol over a WebSocket of its own, because node 20 has none.
"use strict";
const { spawn } = require("child_process");
const crypto = require("crypto");
const fs = require("fs");
const http = require("http");
const os = require("os");
const path = require("path");

const [page, expression, width = "1280", screenshot] = process.argv.slice(2);
const program = process.env.CHROMIUM || "chromium";

// A WebSocket client as far as the protocol needs it: text frames both ways.
class Socket {
  constructor(stream, head) {
    this.stream = stream;
    this.buffer = head;
    this.parts = [];
    this.waiting = new Map();
    this.listeners = [];
    this.next = 1;
    stream.on("data", (data) => {
      this.buffer = Buffer.concat([this.buffer, data]);
      this.read();
    });
  }

  read() {
    while (this.buffer.length >= 2) {
      let length = this.buffer[1] & 127, at = 2;
      if (length === 126) (length = this.buffer.length < 4 ? Infinity : this.buffer.readUInt16BE(2)), (at = 4);
      else if (length === 127) (length = this.buffer.length < 10 ? Infinity : Number(this.buffer.readBigUInt64BE(2))), (at = 10);
      if (this.buffer.length < at + length) return;
      this.parts.push(this.buffer.subarray(at, at + length));
      const last = this.buffer[0] & 128;
      this.buffer = this.buffer.subarray(at + length);
      if (!last) continue;
      const message = JSON.parse(Buffer.concat(this.parts).toString());
      this.parts = [];
      if (message.id) this.waiting.get(message.id)(message);
      else this.listeners.forEach((listener) => listener(message));
    }
  }

  // Sends a command; its result.
  call(method, params = {}) {
    const id = this.next++, body = Buffer.from(JSON.stringify({ id, method, params })), mask = crypto.randomBytes(4);
    const head = Buffer.alloc(14);
    head[0] = 0x81;
    head[1] = 0x80 | 127;
    head.writeBigUInt64BE(BigInt(body.length), 2);
    mask.copy(head, 10);
    this.stream.write(Buffer.concat([head, body.map((byte, i) => byte ^ mask[i % 4])]));
    return new Promise((done, failed) =>
      this.waiting.set(id, (answer) => (answer.error ? failed(new Error(`${method}: ${answer.error.message}`)) : done(answer.result))));
  }
}

function connect(address) {
  return new Promise((done, failed) => {
    const request = http.get(address.replace("ws:", "http:"), {
      headers: { Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": crypto.randomBytes(16).toString("base64") },
    });
    request.on("upgrade", (_, stream, head) => done(new Socket(stream, head)));
    request.on("error", failed);
  });
}

const get = (address) => new Promise((done, failed) => http.get(address, (answer) => {
  let text = "";
  answer.on("data", (part) => (text += part)).on("end", () => done(JSON.parse(text)));
}).on("error", failed));

// The address of the first page's debugger, once the browser says where it listens.
function started(browser) {
  return new Promise((done, failed) => {
    let said = "";
    browser.stderr.on("data", (data) => {
      said += data;
      const found = said.match(/DevTools listening on ws:\/\/([^/]+)\//);
      if (found) get(`http://${found[1]}/json`).then((pages) => done(pages.find((x) => x.type === "page").webSocketDebuggerUrl), failed);
    });
    browser.on("exit", () => failed(new Error(`the browser ended: ${said}`)));
  });
}

// Removes a folder into which the browser's last processes may still write; what is left then lies in the system's folder for such.
async function removed(folder) {
  for (let turn = 0; turn < 50; turn++) {
    try {
      return fs.rmSync(folder, { recursive: true, force: true });
    } catch {
      await new Promise((done) => setTimeout(done, 100));
    }
  }
}

(async () => {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), "browser-"));
  const browser = spawn(program, ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", `--user-data-dir=${profile}`, "about:blank"]);
  try {
    const socket = await connect(await started(browser)), thrown = [], logged = [];
    socket.listeners.push(({ method, params }) => {
      if (method === "Runtime.exceptionThrown") thrown.push(params.exceptionDetails.exception?.description || params.exceptionDetails.text);
      if (method === "Runtime.consoleAPICalled") logged.push(params.args.map((x) => x.value).join(" "));
    });
    const loaded = new Promise((done) => socket.listeners.push(({ method }) => method === "Page.loadEventFired" && done()));
    await socket.call("Runtime.enable");
    await socket.call("Page.enable");
    await socket.call("Emulation.setDeviceMetricsOverride", { width: Number(width), height: 900, deviceScaleFactor: 1, mobile: false });
    await socket.call("Emulation.setScrollbarsHidden", { hidden: true });  // the whole width is the page's, as on a phone
    if (process.env.DARK) await socket.call("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: "dark" }] });
    await socket.call("Page.navigate", { url: page });
    await loaded;
    const { result, exceptionDetails } = await socket.call("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) thrown.push(exceptionDetails.exception?.description || exceptionDetails.text);
    if (screenshot) {
      const { data } = await socket.call("Page.captureScreenshot", { captureBeyondViewport: true });
      fs.writeFileSync(screenshot, Buffer.from(data, "base64"));
    }
    console.log(JSON.stringify({ value: result.value, thrown, logged }));
  } finally {
    browser.removeAllListeners("exit");
    browser.kill();
    await new Promise((done) => browser.on("exit", done));
    await removed(profile);
  }
})().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
