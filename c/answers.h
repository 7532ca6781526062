// How results of the engine become those of the C interface.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/c/leasehold.h>
#include <leasehold/replica/calls.h>

#include <string>

namespace leasehold::c {

int status_of(ErrorCode code);
int role_of(raft::Role role);
/// Unless `to` is null. Returns the status.
int fill(leasehold_error* to, int status, const std::string& text);
int fill(leasehold_error* to, const Error& error);
/// What a callback returned and said, for the engine; `who` is its name.
Error error_of(int status, const leasehold_error& said, const char* who);

/// DROPPED or UNKNOWN, with its sentence.
int fill_unanswered(leasehold_error* to, const replica::ProposeResult& result);
int fill_unanswered(leasehold_error* to, const replica::ReadResult& result);

}  // namespace leasehold::c
