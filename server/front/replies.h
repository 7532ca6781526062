// Replies to clients: for results of the store, and for commands that were not executed.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/kv/lease_keeper.h>
#include <leasehold/replica/calls.h>
#include <leasehold/server/front/command_spec.h>
#include <leasehold/server/front/multi.h>
#include <leasehold/server/front/resp.h>
#include <leasehold/server/front/server_state.h>

#include <string>

namespace leasehold::server {

/// Appends the reply for a result of the store. `parts`: of a transaction. `keeper` knows how much
/// is left of a key's time; may be null.
void append_kv_reply(std::string& out, const kv::Reply& reply, Protocol protocol, ReplyForm form,
                     const TransactionParts& parts, kv::LeaseKeeper* keeper);
/// The same, of an encoded result.
void append_encoded_reply(std::string& out, const Bytes& bytes, Protocol protocol, ReplyForm form,
                          const TransactionParts& parts, kv::LeaseKeeper* keeper);
/// Appends the error of a command that the node has refused.
void append_not_executed(std::string& out, bool overloaded, raft::NodeId leader);
/// The same, of a proposal that was dropped.
void append_dropped(std::string& out, const replica::ProposeResult& result);
/// The reply of a witness to every command that touches the store: which node to ask, if it knows
/// one.
std::string witness_refusal(const ServerState& state);

}  // namespace leasehold::server
