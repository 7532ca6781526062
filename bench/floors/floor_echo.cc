// floor_echo: what any networked read must pay. A TCP server on asio that answers requests of the
// size of a GET with replies of the size of its value.
#include <leasehold/bench/floors/child.h>
#include <leasehold/bench/floors/echo_server.h>
#include <leasehold/bench/report.h>
#include <leasehold/bench/workload.h>

#include <CLI/CLI.hpp>

#include <iostream>

namespace leasehold::bench {
namespace {

Result<void> measure(const EchoOptions& options, const Workload& workload, std::uint64_t operations,
                     bool json) {
  auto server = Child::start([&options] { return serve_echo(options); });
  if (!server) return server.error();
  auto socket = connect_tcp(server.value().address());
  if (!socket) return socket.error();
  Random random(1);
  auto result = closed_loop(socket.value(), workload, operations, operations / 10, random);
  if (!result) return result.error();
  const NamedHistograms rows = {{"echo", result.value().latency}};
  std::cout << (json ? json_of(rows, "ns") + "\n"
                     : "closed loop, one connection\n" + table_of(rows, 1000.0, "us"));
  return {};
}

int run(int argc, char** argv) {
  CLI::App app(
      "The floor under a networked read: an asio server that answers requests of the size of a GET "
      "with\nreplies of the size of its value. Alone it measures itself over loopback; `serve` "
      "only serves.");
  Workload workload;
  EchoOptions options;
  std::uint64_t operations = 20000;
  bool json = false;
  app.add_option("--value-bytes", workload.value_bytes, "bytes of the value")
      ->capture_default_str();
  app.add_option("--operations", operations, "requests to measure")->capture_default_str();
  app.add_flag("--json", json, "print JSON instead of a table");
  CLI::App* serve = app.add_subcommand("serve", "serve until SIGTERM; prints `listening ADDRESS`");
  serve->add_option("--listen", options.listen, "host:port")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  options.request_bytes = request_bytes(workload);
  options.reply = reply_of(workload, 0);
  const auto done =
      serve->parsed() ? serve_echo(options) : measure(options, workload, operations, json);
  if (!done) std::cerr << "floor_echo: " << done.error().message << "\n";
  return done ? 0 : 1;
}

}  // namespace
}  // namespace leasehold::bench

int main(int argc, char** argv) {
  return leasehold::bench::run(argc, argv);
}
