// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/messages.hpp"

#include <cstddef>
#include <memory>

#include "c/call.hpp"

using namespace beeline;
using c::object_of;

struct beeline_messages : c::Handle<0xbee10009> {
  beeline_messages(Team& team, const MessageOptions& options) : messages(team, options) {}
  Messages messages;
};

namespace {

static_assert(sizeof(beeline_message_options) == 32 && offsetof(beeline_message_options, sessions) == 4);
static_assert(offsetof(beeline_message_options, eager_bytes) == 8 && offsetof(beeline_message_options, depth) == 24);
static_assert(offsetof(beeline_message_options, chunk_bytes) == 16);
static_assert(sizeof(beeline_message_call) == 24 && offsetof(beeline_message_call, blocks) == 4);
static_assert(offsetof(beeline_message_call, tag) == 8 && offsetof(beeline_message_call, stream) == 16);
static_assert(sizeof(beeline_message) == 24 && offsetof(beeline_message, peer) == 4);
static_assert(offsetof(beeline_message, vector) == 8 && offsetof(beeline_message, count) == 16);
static_assert(BEELINE_MOST_MESSAGE_TAG == most_message_tag);

MessageCall call_of(const beeline_message_call* given) {
  if (given == nullptr) return {};
  const beeline_message_call& call = c::structure_of(given, "call");
  return {.stream = call.stream == nullptr ? nullptr : object_of(call.stream, "call.stream").stream,
          .blocks = call.blocks,
          .tag = call.tag};
}

/// A call, blocking or on its stream: `body(messages, type, how)`.
template <class Body>
beeline_status make(const char* function, beeline_messages* handle, std::int32_t type, const beeline_message_call* call,
                    const Body& body) noexcept {
  return c::guarded(function, [&] {
    Messages& messages = object_of(handle, "messages").messages;
    c::require_enumerator(type, element_types, "type");
    detail::make_call(messages.team(), call_of(call),
                      [&](const MessageCall& how) { body(messages, static_cast<ElementType>(type), how); });
  });
}

int peer_of(const Messages& messages, std::int32_t peer, const char* argument = "peer") {
  return static_cast<int>(c::peer_of(messages.team(), peer, argument));
}

}  // namespace

beeline_status beeline_messages_create(beeline_team* team, const beeline_message_options* options,
                                       beeline_messages** messages) noexcept {
  return c::collective("beeline_messages_create", team, [&](Team& of) {
    c::require_pointer(messages, "messages");
    MessageOptions wanted;
    if (options != nullptr) {
      const beeline_message_options& given = c::structure_of(options, "options");
      wanted.sessions = given.sessions, wanted.eager_bytes = given.eager_bytes;
      wanted.chunk_bytes = given.chunk_bytes, wanted.depth = given.depth;
    }
    *messages = std::make_unique<beeline_messages>(of, wanted).release();
  });
}

beeline_status beeline_messages_destroy(beeline_messages* messages) noexcept {
  return c::guarded("beeline_messages_destroy", [&] { delete &object_of(messages, "messages"); });
}

beeline_status beeline_send(beeline_messages* messages, const void* source, size_t count, int32_t type, int32_t peer,
                            const beeline_message_call* call) noexcept {
  return make("beeline_send", messages, type, call, [&](Messages& of, ElementType element, const MessageCall& how) {
    c::require_memory(source, count, "source");
    of.send_on_stream(source, count, element, peer_of(of, peer), how);
  });
}

beeline_status beeline_receive(beeline_messages* messages, void* destination, size_t count, int32_t type, int32_t peer,
                               const beeline_message_call* call) noexcept {
  return make("beeline_receive", messages, type, call, [&](Messages& of, ElementType element, const MessageCall& how) {
    c::require_memory(destination, count, "destination");
    of.receive_on_stream(destination, count, element, peer_of(of, peer), how);
  });
}

beeline_status beeline_send_receive(beeline_messages* messages, const beeline_message* sent,
                                    const beeline_message* received, int32_t type,
                                    const beeline_message_call* call) noexcept {
  return make("beeline_send_receive", messages, type, call,
              [&](Messages& of, ElementType element, const MessageCall& how) {
                const beeline_message &out = c::structure_of(sent, "sent"), &in = c::structure_of(received, "received");
                c::require_memory(out.vector, out.count, "sent.vector");
                c::require_memory(in.vector, in.count, "received.vector");
                of.send_receive_on_stream({out.vector, out.count, peer_of(of, out.peer, "sent.peer")},
                                          {in.vector, in.count, peer_of(of, in.peer, "received.peer")}, element, how);
              });
}

beeline_status beeline_probe(beeline_messages* messages, int32_t peer) noexcept {
  return c::guarded("beeline_probe", [&] {
    const Messages& of = object_of(messages, "messages").messages;
    return of.probe(peer_of(of, peer)) ? Status::ok : Status::in_progress;
  });
}
