// A web server with a table, which writes its port into the file `port`.
const fs = require("fs"), http = require("http");
const table = new Map(); for (let i = 0; i < 20000; i++) table.set(i, `<p>${i}</p>`.repeat(100));
const server = http.createServer((request, response) => {
    if (request.url === "/end") { return response.end("ended\n", () => setTimeout(() => process.exit(0), 20)); }
    response.end(JSON.stringify({ at: request.url, text: table.get(Number(request.url.split("?")[1]) % 20000) }));
}).listen(0, "127.0.0.1", () => { fs.writeFileSync("port.new", String(server.address().port)); fs.renameSync("port.new", "port"); });
