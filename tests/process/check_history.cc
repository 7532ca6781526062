// Judges a recorded history of client operations: is it linearizable?
//
//   check_history FILE        ("-" reads standard input)
//
// One operation a line, of numbers: client key r|w value invoked_ns returned_ns|never
// A read of a key that was never written has the value 0. Status: 0 linearizable, 1 not (the
// explanation is printed), 2 no such file or a line that breaks the form, 3 undecided.
#include <leasehold/sim/linearizability.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using leasehold::sim::Operation;
using leasehold::sim::OperationKind;

constexpr int kLinearizable = 0, kViolation = 1, kBadInput = 2, kUndecided = 3;

bool parse(const std::string& line, Operation& operation) {
  std::istringstream words(line);
  std::string kind, returned, rest;
  words >> operation.client >> operation.key >> kind >> operation.value >> operation.invoked_ns >>
      returned;
  if (!words || words >> rest || (kind != "r" && kind != "w")) return false;
  operation.kind = kind == "r" ? OperationKind::read : OperationKind::write;
  if (returned == "never") {
    operation.returned_ns = Operation::kNeverReturned;
    return operation.kind == OperationKind::write;
  }
  std::istringstream number(returned);
  return number >> operation.returned_ns && number.eof() &&
         operation.returned_ns >= operation.invoked_ns;
}

int judge(std::istream& in) {
  std::vector<Operation> history;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    Operation operation;
    if (!parse(line, operation)) {
      std::cerr << "check_history: line " << number << ": '" << line
                << "' is not: client key r|w value invoked_ns returned_ns|never\n";
      return kBadInput;
    }
    history.push_back(operation);
  }
  const auto report = leasehold::sim::check_linearizable(history);
  switch (report.verdict) {
    case leasehold::sim::Verdict::linearizable:
      std::cout << "linearizable: " << history.size() << " operations\n";
      return kLinearizable;
    case leasehold::sim::Verdict::undecided:
      std::cout << "undecided: key " << report.key << ": " << report.explanation << "\n";
      return kUndecided;
    case leasehold::sim::Verdict::violation: break;
  }
  std::cout << "not linearizable: key " << report.key << ": " << report.explanation << "\n";
  return kViolation;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: check_history FILE\n";
    return kBadInput;
  }
  const std::string path = argv[1];
  if (path == "-") return judge(std::cin);
  std::ifstream file(path);
  if (!file) {
    std::cerr << "check_history: cannot read " << path << "\n";
    return kBadInput;
  }
  return judge(file);
}
