// How a row of the command table is written. For command_table.cc alone.
#pragma once

#include <leasehold/server/front/command_spec.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace leasehold::server::command_rows {

using Effect = CommandEffect;
using Group = CommandGroup;
using Form = ReplyForm;
using Make = std::string (*)(const Arguments&, kv::Operation&);
using Run = void (*)(Session&, const Arguments&, std::string&);
using While = WhileListening;
using Scan = void (*)(StoreReader&, const Arguments&, std::string&);

struct Keys {
  int first, last, step;
};
constexpr Keys kNoKeys = {0, 0, 0};
constexpr Keys kOneKey = {1, 1, 1};
constexpr Keys kSecondKey = {2, 2, 1};
constexpr Keys kTwoKeys = {1, 2, 1};
constexpr Keys kAllKeys = {1, -1, 1};
constexpr Keys kPairs = {1, -1, 2};

/// Changes the store when it is applied.
constexpr CommandSpec change(std::string_view name, int arity, Group group, Keys keys, Make make,
                             const char* summary) {
  return {name,      arity,       Effect::write, group, InMulti::queued, keys.first, keys.last,
          keys.step, Form::plain, summary,       make,  nullptr};
}

/// A write by itself only where the shorter way is closed.
constexpr CommandSpec renewal(std::string_view name, int arity, Make make, Run run,
                              const char* summary) {
  return {name,
          arity,
          Effect::after_writes,
          Group::leasehold,
          InMulti::queued,
          0,
          0,
          0,
          Form::plain,
          summary,
          make,
          run};
}

/// A read of the store that may also be in a transaction. `run`: a shorter way to do the same.
constexpr CommandSpec query(std::string_view name, int arity, Group group, Keys keys, Make make,
                            Form form, const char* summary, Run run = nullptr) {
  return {name, arity,   Effect::read, group, InMulti::queued, keys.first, keys.last, keys.step,
          form, summary, make,         run};
}

/// A read of the store that may not.
constexpr CommandSpec scan(std::string_view name, int arity, Group group, Scan read,
                           const char* summary) {
  return {name, arity,       Effect::read, group,   InMulti::refused, 0,   0,
          0,    Form::plain, summary,      nullptr, nullptr,          read};
}

constexpr CommandSpec records(CommandSpec spec) {
  spec.reads_records = true;
  return spec;
}

constexpr CommandSpec in_each_group(CommandSpec spec) {
  spec.in_each_group = true;
  return spec;
}

constexpr CommandSpec in_group(CommandSpec spec,
                               std::size_t (*group_of)(const ServerState&, const Arguments&,
                                                       const ServedGroups&)) {
  spec.group_of = group_of;
  return spec;
}

/// About the transaction itself: it is not queued.
constexpr CommandSpec multi(std::string_view name, int arity, Effect effect, Keys keys, Run run,
                            const char* summary) {
  return {name,       arity,     effect,    Group::transactions, InMulti::run,
          keys.first, keys.last, keys.step, Form::transaction,   summary,
          nullptr,    run};
}

/// About the connection, the node or the cluster.
constexpr CommandSpec other(std::string_view name, int arity, Effect effect, Group group, Run run,
                            const char* summary, InMulti in_multi = InMulti::refused,
                            While while_listening = While::refused) {
  return {name, arity,       effect,  group,   in_multi, 0,       0,
          0,    Form::plain, summary, nullptr, run,      nullptr, while_listening};
}

}  // namespace leasehold::server::command_rows
