// The functions behind the command table, by chapter. See CommandSpec for what each has to do.
#pragma once

#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/front/session.h>
#include <leasehold/server/front/store_reader.h>

#include <string>

namespace leasehold::server {

// commands_strings.cc, commands_bits.cc, commands_keys.cc, commands_expiry.cc and
// commands_leases.cc: what the store is asked for.
std::string make_append(const Arguments& args, kv::Operation& operation);
std::string make_decr(const Arguments& args, kv::Operation& operation);
std::string make_decrby(const Arguments& args, kv::Operation& operation);
std::string make_expire(const Arguments& args, kv::Operation& operation);
std::string make_expireat(const Arguments& args, kv::Operation& operation);
std::string make_get(const Arguments& args, kv::Operation& operation);
std::string make_getdel(const Arguments& args, kv::Operation& operation);
std::string make_getex(const Arguments& args, kv::Operation& operation);
std::string make_getrange(const Arguments& args, kv::Operation& operation);
std::string make_getset(const Arguments& args, kv::Operation& operation);
std::string make_incr(const Arguments& args, kv::Operation& operation);
std::string make_incrby(const Arguments& args, kv::Operation& operation);
std::string make_incrbyfloat(const Arguments& args, kv::Operation& operation);
std::string make_bitcount(const Arguments& args, kv::Operation& operation);
std::string make_getbit(const Arguments& args, kv::Operation& operation);
std::string make_lcs(const Arguments& args, kv::Operation& operation);
std::string make_setbit(const Arguments& args, kv::Operation& operation);
std::string make_key_lease(const Arguments& args, kv::Operation& operation);
std::string make_mget(const Arguments& args, kv::Operation& operation);
std::string make_mset(const Arguments& args, kv::Operation& operation);
std::string make_msetnx(const Arguments& args, kv::Operation& operation);
std::string make_persist(const Arguments& args, kv::Operation& operation);
std::string make_pexpire(const Arguments& args, kv::Operation& operation);
std::string make_pexpireat(const Arguments& args, kv::Operation& operation);
std::string make_psetex(const Arguments& args, kv::Operation& operation);
std::string make_set(const Arguments& args, kv::Operation& operation);
std::string make_setex(const Arguments& args, kv::Operation& operation);
std::string make_setnx(const Arguments& args, kv::Operation& operation);
std::string make_setrange(const Arguments& args, kv::Operation& operation);
std::string make_setseq(const Arguments& args, kv::Operation& operation);
std::string make_strlen(const Arguments& args, kv::Operation& operation);
std::string make_copy(const Arguments& args, kv::Operation& operation);
std::string make_dbsize(const Arguments& args, kv::Operation& operation);
std::string make_del(const Arguments& args, kv::Operation& operation);
std::string make_exists(const Arguments& args, kv::Operation& operation);
std::string make_object(const Arguments& args, kv::Operation& operation);
std::string make_object_encoding(const Arguments& args, kv::Operation& operation);
std::string make_rename(const Arguments& args, kv::Operation& operation);
std::string make_lease_attach(const Arguments& args, kv::Operation& operation);
std::string make_lease_detach(const Arguments& args, kv::Operation& operation);
std::string make_lease_grant(const Arguments& args, kv::Operation& operation);
std::string make_lease_info(const Arguments& args, kv::Operation& operation);
std::string make_lease_list(const Arguments& args, kv::Operation& operation);
std::string make_lease_renew(const Arguments& args, kv::Operation& operation);
std::string make_lease_revoke(const Arguments& args, kv::Operation& operation);
std::string make_renamenx(const Arguments& args, kv::Operation& operation);

// The read that is made without detours, and what is about many keys that no transaction may
// contain.
void run_flush(Session& session, const Arguments& args, std::string& out);
void run_get(Session& session, const Arguments& args, std::string& out);
void scan_keys(StoreReader& reader, const Arguments& args, std::string& out);
void scan_random(StoreReader& reader, const Arguments& args, std::string& out);
void scan_some(StoreReader& reader, const Arguments& args, std::string& out);

// commands_acl.cc
void run_acl_cat(Session& session, const Arguments& args, std::string& out);
void run_acl_deluser(Session& session, const Arguments& args, std::string& out);
void run_acl_dryrun(Session& session, const Arguments& args, std::string& out);
void run_acl_genpass(Session& session, const Arguments& args, std::string& out);
void run_acl_getuser(Session& session, const Arguments& args, std::string& out);
void run_acl_list(Session& session, const Arguments& args, std::string& out);
void run_acl_log(Session& session, const Arguments& args, std::string& out);
void run_acl_setuser(Session& session, const Arguments& args, std::string& out);
void run_acl_users(Session& session, const Arguments& args, std::string& out);
void run_acl_whoami(Session& session, const Arguments& args, std::string& out);
void run_auth(Session& session, const Arguments& args, std::string& out);

// commands_multi.cc
/// Why EXEC does nothing: the text of an error, or empty.
std::string problem_of_exec(const Session& session, const Multi::Finished& finished);
void run_discard(Session& session, const Arguments& args, std::string& out);
void run_exec(Session& session, const Arguments& args, std::string& out);
void run_leasehold_expect(Session& session, const Arguments& args, std::string& out);
void run_multi(Session& session, const Arguments& args, std::string& out);
void run_unwatch(Session& session, const Arguments& args, std::string& out);
void run_watch(Session& session, const Arguments& args, std::string& out);

// commands_config.cc
void run_config_get(Session& session, const Arguments& args, std::string& out);
void run_config_set(Session& session, const Arguments& args, std::string& out);

// commands_connection.cc
void run_client_getname(Session& session, const Arguments& args, std::string& out);
void run_client_id(Session& session, const Arguments& args, std::string& out);
void run_client_info(Session& session, const Arguments& args, std::string& out);
void run_client_kill(Session& session, const Arguments& args, std::string& out);
void run_client_list(Session& session, const Arguments& args, std::string& out);
void run_client_noted(Session& session, const Arguments& args, std::string& out);
void run_client_on_off(Session& session, const Arguments& args, std::string& out);
void run_client_reply(Session& session, const Arguments& args, std::string& out);
void run_client_setname(Session& session, const Arguments& args, std::string& out);
void run_echo(Session& session, const Arguments& args, std::string& out);
void run_hello(Session& session, const Arguments& args, std::string& out);
void run_ping(Session& session, const Arguments& args, std::string& out);
void run_quit(Session& session, const Arguments& args, std::string& out);
void run_reset(Session& session, const Arguments& args, std::string& out);
void run_select(Session& session, const Arguments& args, std::string& out);

// commands_server.cc
void run_command(Session& session, const Arguments& args, std::string& out);
void run_command_count(Session& session, const Arguments& args, std::string& out);
void run_command_docs(Session& session, const Arguments& args, std::string& out);
void run_command_getkeys(Session& session, const Arguments& args, std::string& out);
void run_command_info(Session& session, const Arguments& args, std::string& out);
void run_command_list(Session& session, const Arguments& args, std::string& out);
/// HELP of every command with subcommands, from the table.
void run_help(Session& session, const Arguments& args, std::string& out);
void run_info(Session& session, const Arguments& args, std::string& out);
void run_slowlog_get(Session& session, const Arguments& args, std::string& out);
void run_slowlog_len(Session& session, const Arguments& args, std::string& out);
void run_slowlog_reset(Session& session, const Arguments& args, std::string& out);
void run_time(Session& session, const Arguments& args, std::string& out);
void run_wait(Session& session, const Arguments& args, std::string& out);

// commands_cluster.cc
void scan_slot(StoreReader& reader, const Arguments& args, std::string& out);
std::size_t group_of_slot(const ServerState& state, const Arguments& args,
                          const ServedGroups& groups);
std::size_t group_of_cursor(const ServerState& state, const Arguments& args,
                            const ServedGroups& groups);
void run_cluster_info(Session& session, const Arguments& args, std::string& out);
void run_cluster_keyslot(Session& session, const Arguments& args, std::string& out);
void run_cluster_myid(Session& session, const Arguments& args, std::string& out);
void run_cluster_nodes(Session& session, const Arguments& args, std::string& out);
void run_cluster_shards(Session& session, const Arguments& args, std::string& out);
void run_cluster_slots(Session& session, const Arguments& args, std::string& out);
void run_readonly(Session& session, const Arguments& args, std::string& out);
void run_role(Session& session, const Arguments& args, std::string& out);

// commands_leasehold.cc and commands_member.cc
void run_leasehold_backup(Session& session, const Arguments& args, std::string& out);
void run_leasehold_clock(Session& session, const Arguments& args, std::string& out);
void run_leasehold_explain(Session& session, const Arguments& args, std::string& out);
void run_leasehold_group(Session& session, const Arguments& args, std::string& out);
void run_leasehold_member(Session& session, const Arguments& args, std::string& out);
void run_leasehold_read(Session& session, const Arguments& args, std::string& out);
void run_leasehold_readbackup(Session& session, const Arguments& args, std::string& out);
void run_leasehold_readmode(Session& session, const Arguments& args, std::string& out);
void run_leasehold_host(Session& session, const Arguments& args, std::string& out);
void run_leasehold_reload(Session& session, const Arguments& args, std::string& out);
void run_leasehold_snapshot(Session& session, const Arguments& args, std::string& out);
void run_leasehold_status(Session& session, const Arguments& args, std::string& out);

// commands_pool.cc
void run_leasehold_pool(Session& session, const Arguments& args, std::string& out);

// commands_leases.cc
/// Without the log where this node may; else as the table's other writes.
void run_lease_renew(Session& session, const Arguments& args, std::string& out);

// commands_scripts.cc
void run_eval(Session& session, const Arguments& args, std::string& out);
void run_evalsha(Session& session, const Arguments& args, std::string& out);
void run_script_exists(Session& session, const Arguments& args, std::string& out);
void run_script_flush(Session& session, const Arguments& args, std::string& out);
void run_script_load(Session& session, const Arguments& args, std::string& out);

// commands_sessions.cc
void run_leasehold_once(Session& session, const Arguments& args, std::string& out);
void run_leasehold_session(Session& session, const Arguments& args, std::string& out);

// commands_slots.cc
void run_leasehold_slots(Session& session, const Arguments& args, std::string& out);

// commands_subscribe.cc
void run_subscribe(Session& session, const Arguments& args, std::string& out);
void run_unsubscribe(Session& session, const Arguments& args, std::string& out);

// commands_watch.cc
void run_leasehold_unwatch(Session& session, const Arguments& args, std::string& out);
void run_leasehold_watch(Session& session, const Arguments& args, std::string& out);
/// Whether a scan_range() is of one key.
bool is_exact_range(const Arguments& args);
void scan_range(StoreReader& reader, const Arguments& args, std::string& out);

// commands_transfer.cc
void run_leasehold_settings(Session& session, const Arguments& args, std::string& out);
void run_leasehold_trace(Session& session, const Arguments& args, std::string& out);
void run_leasehold_traceparent(Session& session, const Arguments& args, std::string& out);
void run_leasehold_transfer(Session& session, const Arguments& args, std::string& out);

}  // namespace leasehold::server
