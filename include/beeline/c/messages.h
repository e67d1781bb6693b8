// SPDX-License-Identifier: Apache-2.0
/// @file
/// Messages from one member of a team to another. Between two members, messages are matched in the order of the calls:
/// a receive has the same number of bytes and blocks and the same tag as its send, and elements of the same type (or
/// BEELINE_UINT8); a difference aborts the team with a text that names both values.
///
/// A call without a stream blocks until it has ended, after the earlier work of the default stream, and returns its
/// failures. A call with a stream returns at once and runs in the stream's order: its vectors must not be changed until
/// the stream has passed the call, and `beeline_synchronize` returns its failures. Short messages are *eager*: a send
/// ends without its receive. Longer messages wait for the receiver (*rendezvous*). So two members that both send first
/// wait for each other until the deadline; `beeline_send_receive` avoids this.
///
/// Calls for one peer and direction are made one after the other, by any threads. Threads: any for different peers.
#ifndef BEELINE_C_MESSAGES_H
#define BEELINE_C_MESSAGES_H

#include "beeline/c/base.h"

BEELINE_C_BEGIN

/// Sizes of a channel, the same on all members. Zero-initialize the structure; a size of 0 is chosen by the kind and
/// number of members.
typedef struct beeline_message_options {
  uint32_t struct_bytes;  ///< sizeof(beeline_message_options)
  uint32_t sessions;      ///< largest number of blocks of a message
  uint64_t eager_bytes;   ///< longest message that is sent eagerly; tune this value first
  uint64_t chunk_bytes;   ///< size of a chunk, for vectors outside the heaps
  uint32_t depth;         ///< messages in flight to one receiver, a power of two, at least 2
  int32_t reserved;       ///< 0
} beeline_message_options;

/// How one call is made. Zero-initialize it, or pass NULL in its place.
typedef struct beeline_message_call {
  uint32_t struct_bytes;   ///< sizeof(beeline_message_call)
  uint32_t blocks;         ///< the same at sender and receiver; 0: by size
  uint32_t tag;            ///< the same at sender and receiver, up to BEELINE_MOST_MESSAGE_TAG
  int32_t reserved;        ///< 0
  beeline_stream* stream;  ///< NULL: the call blocks
} beeline_message_call;
#define BEELINE_MOST_MESSAGE_TAG 2047

/// One message of `beeline_send_receive`.
typedef struct beeline_message {
  uint32_t struct_bytes;  ///< sizeof(beeline_message)
  int32_t peer;           ///< the member that receives or sends the message
  void* vector;           ///< [count], aligned to its elements; a vector that is sent is only read
  size_t count;           ///< elements
} beeline_message;

/// Collective. Makes a channel for the messages of a team.
///   options   NULL: all sizes are chosen
///   messages  ended by `beeline_messages_destroy`, before the team
/// Blocks. BEELINE_INVALID_ARGUMENT if members pass different options, BEELINE_NO_RESOURCE if the heap is full.
/// Threads: one for the team.
beeline_status beeline_messages_create(beeline_team* team, const beeline_message_options* options,
                                       beeline_messages** messages) BEELINE_NOEXCEPT;
/// Collective. All calls must have ended. Threads: one for the team.
beeline_status beeline_messages_destroy(beeline_messages* messages) BEELINE_NOEXCEPT;

/// Sends `count` elements to the member `peer`.
///   source  [count], in any memory that the rank's kernels reach;  type  BEELINE_FLOAT32, ...;  call  NULL: blocks
beeline_status beeline_send(beeline_messages* messages, const void* source, size_t count, int32_t type, int32_t peer,
                            const beeline_message_call* call) BEELINE_NOEXCEPT;
/// Receives `count` elements from the member `peer`. destination [count], as `source` of `beeline_send`
beeline_status beeline_receive(beeline_messages* messages, void* destination, size_t count, int32_t type, int32_t peer,
                               const beeline_message_call* call) BEELINE_NOEXCEPT;
/// Sends and receives at the same time, so that neighbours can swap. The peers may differ, and may be the calling
/// member; the vectors must not overlap.
beeline_status beeline_send_receive(beeline_messages* messages, const beeline_message* sent,
                                    const beeline_message* received, int32_t type,
                                    const beeline_message_call* call) BEELINE_NOEXCEPT;
/// BEELINE_OK if a message from `peer` has arrived, so that a receive would not wait for the sender;
/// BEELINE_IN_PROGRESS if not. Does not block; earlier receives from `peer` must have ended. BEELINE_UNAVAILABLE if the
/// channel is in GPU memory.
beeline_status beeline_probe(beeline_messages* messages, int32_t peer) BEELINE_NOEXCEPT;

BEELINE_C_END

#endif
