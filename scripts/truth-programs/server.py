"""A web server with a table, which writes its port into the file `port`."""
import http.server, os, threading
table = {i: "<p>%d</p>" % i * 100 for i in range(20000)}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", -1

    def do_GET(self):
        end = self.path == "/end"
        text = b"ended\n" if end else table[int(self.path.split("?")[-1] or 0) % 20000].encode() if "?" in self.path else table[7].encode()
        self.send_response(200); self.send_header("Content-Length", str(len(text))); self.end_headers(); self.wfile.write(text)
        if end:
            self.wfile.flush()
            threading.Thread(target=server.shutdown).start()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open("port.new", "w") as file:
    file.write(str(server.server_port))
os.rename("port.new", "port")
# By default it looks for the end every half second, and a run takes up to so much longer by chance.
server.serve_forever(poll_interval=0.005)
