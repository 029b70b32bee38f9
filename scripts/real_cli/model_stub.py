#!/usr/bin/env python3
r"""A model that answers from a script, on the loopback interface: what scripts/real-cli lets the real `claude` and
`codex` talk to, so that they run without a login, a network or a model.

Of two wire protocols it speaks as much as one `claude -p` or `codex exec` needs, tool calls included: the Anthropic
Messages API (POST /v1/messages, streamed or not, and count_tokens) and the OpenAI Responses API (POST
/v1/responses, streamed). Everything else is answered with 404, which both CLIs bear.

    model_stub.py [--port N] [--script FILE] [--log FILE] [--dump DIR] [--max-seconds N]

prints `PORT <n>` once it listens, and ends on SIGTERM or after --max-seconds. A script:

    {"default": [{"text": "STUB-OK"}],
     "rules": [
       {"match": "make (\\S+)", "turns": [{"shell": "touch \\1"}, {"text": "made \\1"}]},
       {"match": "LIMIT",       "turns": [{"error": 429, "kind": "session_limit"}]}]}

The first rule applies whose every regular expression is found: `match` in the LAST prompt of a person, `system` in the
system prompt, `model` in the model's name. Its n-th turn answers the n-th call since that prompt, and the last turn
repeats: a run walks down the list as the results of its tools come back. In all strings of a turn \\1 and \\g<name>
stand for groups of `match`, {{prompt}} for the prompt. The keys of a turn, of which it has one or more:

    text          a reply, an object as its JSON; beside a tool call it is said first
    shell         a shell command, as a call of Bash (claude) or of the shell tool that codex offers
    tool, input   a call of the tool of that name; `tools`: [{tool, input}, ...] for several at once
    error         an HTTP status instead of a reply; with `message`, `type`, `headers`, `body` (all of it, as JSON) or
                  `kind`: session_limit or weekly_limit, which opens again after `resets_in` seconds (3600)
    stream_error  an error code: the reply begins and then breaks off with it
    drop          true: the connection is closed without an answer
    times         the turn is served that often and then passed over, for errors that heal; it is none of the n
    usage         {"input_tokens": 100, "output_tokens": 20, ...}
    delay_ms      a pause first; chunk_ms: the text goes out word by word with such pauses
    stop_reason   in the place of end_turn or tool_use (Anthropic)
"""
import argparse
import json
import os
import re
import signal
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ERROR_TYPES = {400: "invalid_request_error", 401: "authentication_error",
               403: "permission_error", 404: "not_found_error", 413: "request_too_large",
               429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}
AUTH = ("authorization", "x-api-key")  # logged by name only, never by value
# What the CLIs themselves put into user messages, which is not the prompt.
INJECTED = re.compile(
    r"\s*<(system-reminder|environment_context|user_instructions|permissions|skills_"
    r"|apps_|plugins_|collaboration_mode|INSTRUCTIONS|turn_aborted|local-command-caveat"
    r"|recommended_)|\s*# AGENTS\.md instructions")


def blocks(content):
    """A message's content as a list of blocks, whichever shape it came in."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def said(content):
    """What a person said in a message, without what the CLI added."""
    texts = [b.get("text", "") for b in blocks(content)
             if b.get("type") in ("text", "input_text")]
    return "\n".join(t for t in texts if not INJECTED.match(t))


def new_id(prefix):
    return prefix + uuid.uuid4().hex[:20]


class Script:
    """The rules, and how often each `times` turn has been served."""

    def __init__(self, path):
        data = json.load(open(path)) if path else {}
        self.rules = data.get("rules", [])
        self.default = data.get("default", [{"text": "STUB-OK"}])
        self.served = {}
        self.lock = threading.Lock()

    def pick(self, prompt, system, model, session, step):
        """The rule's number (None: the default) and the turn to serve."""
        number, turns, found = None, self.default, None
        for i, rule in enumerate(self.rules):
            found = re.search(rule.get("match", ""), prompt, re.S)
            if (found and re.search(rule.get("system", ""), system, re.S)
                    and re.search(rule.get("model", ""), model)):
                number, turns = i, rule["turns"]
                break
            found = None
        with self.lock:
            for at, turn in enumerate(turns):
                if "times" in turn:  # does not count as a step
                    key = (number, at, session, prompt)
                    if step == 0 and self.served.get(key, 0) < turn["times"]:
                        self.served[key] = self.served.get(key, 0) + 1
                        break
                elif step == 0:
                    break
                else:
                    step -= 1
        return number, self.fill(turn, prompt, found)

    def fill(self, value, prompt, found):
        if isinstance(value, dict):
            return {k: self.fill(v, prompt, found) for k, v in value.items()}
        if isinstance(value, list):
            return [self.fill(v, prompt, found) for v in value]
        if not isinstance(value, str):
            return value
        if found:
            value = re.sub(r"\\(?:([1-9])|g<(\w+)>)",
                           lambda m: found[m[2] or int(m[1])] or "", value)
        return value.replace("{{prompt}}", prompt)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script = log_file = dump_dir = None
    lock, dumped = threading.Lock(), 0

    def log_message(self, *args):
        pass

    def record(self, **fields):
        if self.log_file:
            line = {"t": round(time.time(), 3), "method": self.command, "path": self.path,
                    "auth": [h for h in AUTH if self.headers.get(h)], **fields}
            with Handler.lock:
                self.log_file.write(json.dumps(line) + "\n")
                self.log_file.flush()

    def read_body(self):
        raw = b""
        if "chunked" in self.headers.get("transfer-encoding", ""):
            while size := int(self.rfile.readline(), 16):
                raw += self.rfile.read(size + 2)[:-2]
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            data = json.loads(raw)
        except ValueError:
            data = {}
        if self.dump_dir:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in AUTH}
            with Handler.lock:
                Handler.dumped += 1
                name = f"{Handler.dumped:04d}.json"
            with open(os.path.join(self.dump_dir, name), "w") as out:
                json.dump({"path": self.path, "headers": headers, "body": data}, out, indent=1)
        return data

    def answer(self, status, data, headers=None):
        raw = json.dumps(data).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json",
                            "content-length": str(len(raw)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def open_stream(self, headers):
        self.send_response(200)
        for name, value in {"content-type": "text/event-stream",
                            "connection": "close", **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True

    def event(self, kind, **fields):
        line = json.dumps({"type": kind, **fields})
        self.wfile.write(f"event: {kind}\ndata: {line}\n\n".encode())
        self.wfile.flush()

    def do_GET(self):
        self.record(status=404)
        error = {"type": "not_found_error", "message": "not scripted"}
        self.answer(404, {"type": "error", "error": error})

    do_HEAD = do_PUT = do_DELETE = do_GET

    def do_POST(self):
        path, data = self.path.split("?")[0], self.read_body()
        try:
            if path.endswith("/v1/messages"):
                self.anthropic(data)
            elif path.endswith("/responses"):
                self.openai(data)
            elif path.endswith("/v1/messages/count_tokens"):
                self.record(status=200, model=data.get("model"))
                self.answer(200, {"input_tokens": 100})
            else:
                self.do_GET()
        except (BrokenPipeError, ConnectionResetError):
            self.record(note="the client went away")
            self.close_connection = True

    def next_turn(self, prompt, system, model, session, step):
        rule, turn = self.script.pick(prompt, system, model, session, step)
        if isinstance(turn.get("text"), dict):
            turn["text"] = json.dumps(turn["text"])
        status = "drop" if turn.get("drop") else turn.get("error", 200)
        self.record(status=status, model=model, session=session, rule=rule, step=step,
                    prompt=prompt[:200])
        time.sleep(turn.get("delay_ms", 0) / 1000)
        if turn.get("drop"):
            self.close_connection = True
        return turn

    @staticmethod
    def calls(turn, shell):
        """The tool calls of a turn as (name, input)."""
        named = turn.get("tools", [turn] if "tool" in turn else [])
        calls = [shell(turn["shell"])] if "shell" in turn else []
        return calls + [(call["tool"], call.get("input", {})) for call in named]

    @staticmethod
    def pieces(text, turn):
        for word in re.findall(r"\S+\s*|\s+", text) if turn.get("chunk_ms") else [text]:
            yield word
            time.sleep(turn.get("chunk_ms", 0) / 1000)

    # ---- Anthropic Messages ----------------------------------------------
    def anthropic(self, data):
        prompt, step = "", 0
        for message in data.get("messages", []):
            if message["role"] == "assistant":
                step += 1
            elif message["role"] == "user":
                results = any(b.get("type") == "tool_result" for b in blocks(message["content"]))
                if said(message["content"]) and not results:
                    prompt, step = said(message["content"]), 0
        system = "\n".join(b.get("text", "") for b in blocks(data.get("system")))
        model, session = data.get("model", ""), self.headers.get("x-claude-code-session-id", "")
        turn = self.next_turn(prompt, system, model, session, step)
        if turn.get("drop"):
            return None
        if "error" in turn:
            return self.anthropic_error(turn)
        content = [{"type": "text", "text": turn["text"]}] if "text" in turn else []
        for name, args in self.calls(turn, lambda cmd: ("Bash", {"command": cmd})):
            content.append({"type": "tool_use", "id": new_id("toolu_"),
                            "name": name, "input": args})
        usage = {"input_tokens": 100, "output_tokens": 20, "cache_creation_input_tokens": 0,
                 "cache_read_input_tokens": 0, **turn.get("usage", {})}
        called = any(b["type"] == "tool_use" for b in content)
        stop = {"stop_reason": turn.get("stop_reason") or ("tool_use" if called else "end_turn"),
                "stop_sequence": None}
        message = {"id": new_id("msg_"), "type": "message", "role": "assistant", "model": model,
                   "content": content, **stop, "usage": usage}
        if not data.get("stream"):
            return self.answer(200, message, turn.get("headers"))
        self.open_stream(turn.get("headers"))
        self.event("message_start", message={**message, "content": [], "stop_reason": None,
                                             "usage": {**usage, "output_tokens": 1}})
        if "stream_error" in turn:
            return self.event("error", error={"type": turn["stream_error"],
                                              "message": turn.get("message", "scripted")})
        for i, block in enumerate(content):
            empty = {"text": ""} if block["type"] == "text" else {"input": {}}
            self.event("content_block_start", index=i, content_block={**block, **empty})
            kind, field = ("text_delta", "text") if block["type"] == "text" else \
                ("input_json_delta", "partial_json")
            body = block["text"] if "text" in block else json.dumps(block["input"])
            for piece in self.pieces(body, turn):
                self.event("content_block_delta", index=i, delta={"type": kind, field: piece})
            self.event("content_block_stop", index=i)
        self.event("message_delta", delta=stop, usage=usage)
        return self.event("message_stop")

    def anthropic_error(self, turn):
        status, headers = turn["error"], {}
        if turn.get("kind") in ("session_limit", "weekly_limit"):
            claim = "five_hour" if turn["kind"] == "session_limit" else "seven_day"
            headers = {"anthropic-ratelimit-unified-status": "rejected",
                       "anthropic-ratelimit-unified-reset":
                           str(int(time.time()) + turn.get("resets_in", 3600)),
                       "anthropic-ratelimit-unified-representative-claim": claim}
        error = {"type": turn.get("type") or ERROR_TYPES.get(status, "api_error"),
                 "message": turn.get("message", f"scripted {status}")}
        body = turn.get("body") or {"type": "error", "error": error, "request_id": "req_stub"}
        self.answer(status, body, {**headers, **turn.get("headers", {})})

    # ---- OpenAI Responses ------------------------------------------------
    def openai(self, data):
        prompt, step, speaking = "", 0, False
        items = data.get("input", [])
        for item in items if isinstance(items, list) else [{"role": "user", "content": items}]:
            if item.get("role") == "user" and said(item.get("content")):
                prompt, step = said(item.get("content")), 0
            # one model call may leave several items in a row: count runs of them
            model_made = item.get("role", "assistant") == "assistant" and \
                not item.get("type", "").endswith("_output")
            step += model_made and not speaking
            speaking = model_made
        model, session = data.get("model", ""), str(data.get("prompt_cache_key") or "")
        turn = self.next_turn(prompt, data.get("instructions") or "", model, session, step)
        if turn.get("drop"):
            return None
        if "error" in turn:
            return self.openai_error(turn)
        made = {"id": new_id("resp_"), "object": "response", "model": model,
                "status": "in_progress", "output": []}
        self.open_stream(turn.get("headers"))
        self.event("response.created", response=made)
        if "stream_error" in turn:
            error = {"code": turn["stream_error"], "message": turn.get("message", "scripted")}
            return self.event("response.failed",
                              response={**made, "status": "failed", "error": error})
        output = []
        if "text" in turn:
            output.append({"id": new_id("msg_"), "type": "message", "role": "assistant",
                           "status": "completed", "content": [
                               {"type": "output_text", "text": turn["text"], "annotations": []}]})
            self.event("response.output_item.added", output_index=0,
                       item={**output[0], "status": "in_progress", "content": []})
            for piece in self.pieces(turn["text"], turn):
                self.event("response.output_text.delta", item_id=output[0]["id"],
                           output_index=0, content_index=0, delta=piece)
        offered = {t.get("name") for t in data.get("tools", [])}
        for name, args in self.calls(turn, lambda cmd: self.codex_shell(cmd, offered)):
            call = {"id": new_id("fc_"), "call_id": new_id("call_"), "name": name,
                    "status": "completed"}
            if isinstance(args, str):
                output.append({**call, "type": "custom_tool_call", "input": args})
            else:
                output.append({**call, "type": "function_call", "arguments": json.dumps(args)})
        for i, item in enumerate(output):
            self.event("response.output_item.done", output_index=i, item=item)
        spent = {"input_tokens": 100, "output_tokens": 20, **turn.get("usage", {})}
        usage = {k: spent[k] for k in ("input_tokens", "output_tokens")}
        usage["total_tokens"] = sum(usage.values())
        usage["input_tokens_details"] = {"cached_tokens": spent.get("cached_tokens", 0)}
        usage["output_tokens_details"] = {"reasoning_tokens": spent.get("reasoning_tokens", 0)}
        return self.event("response.completed", response={
            **made, "status": "completed", "output": output, "usage": usage})

    def openai_error(self, turn):
        status = turn["error"]
        error = {"type": turn.get("type") or ERROR_TYPES.get(status, "server_error"),
                 "message": turn.get("message", f"scripted {status}"), "code": None, "param": None}
        if turn.get("kind") in ("session_limit", "weekly_limit"):
            after = turn.get("resets_in", 3600)
            error = {"type": "usage_limit_reached", "message": "The usage limit has been reached",
                     "plan_type": "plus", "resets_at": int(time.time()) + after,
                     "resets_in_seconds": after}
        self.answer(status, turn.get("body") or {"error": error}, turn.get("headers"))

    @staticmethod
    def codex_shell(command, offered):
        """The shell tool that this codex offers to this model."""
        if "exec_command" in offered:
            return "exec_command", {"cmd": command}
        if "shell_command" in offered:
            return "shell_command", {"command": command}
        if "exec" in offered:
            return "exec", f"text(await tools.exec_command({json.dumps({'cmd': command})}))"
        return "shell", {"command": ["bash", "-lc", command]}


def main():
    parser = argparse.ArgumentParser(description="a scripted model on 127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 (default): any free port")
    parser.add_argument("--script", help="JSON rules; without it every answer is STUB-OK")
    parser.add_argument("--log", help="append one JSON line per request to this file")
    parser.add_argument("--dump", help="write every POST body into this folder")
    parser.add_argument("--max-seconds", type=int, default=900, help="then it ends (900)")
    args = parser.parse_args()
    if args.dump:
        os.makedirs(args.dump, exist_ok=True)
    Handler.script = Script(args.script)
    Handler.log_file = open(args.log, "a") if args.log else None
    Handler.dump_dir = args.dump
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    server.daemon_threads = True

    def stop(*_):
        threading.Thread(target=server.shutdown, daemon=True).start()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, stop)
    signal.alarm(args.max_seconds)
    print(f"PORT {server.server_address[1]}", flush=True)
    server.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    sys.exit(main())
