! SPDX-License-Identifier: Apache-2.0
! Beeline's C interface for Fortran, written by tools/fortran-module from the headers in beeline/c, which say what the
! functions do. Handles and addresses are type(c_ptr); texts end with c_null_char.
module beeline
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int32_t), parameter :: beeline_headers = 100002
  integer(c_int32_t), parameter :: beeline_version_major = 0
  integer(c_int32_t), parameter :: beeline_version_minor = 1
  integer(c_int32_t), parameter :: beeline_version_patch = 0
  integer(c_int32_t), parameter :: beeline_interface = 2
  integer(c_int32_t), parameter :: beeline_any_rank = -1
  integer(c_int32_t), parameter :: beeline_most_message_tag = 2047
  integer(c_int32_t), parameter :: beeline_max_node_ranks = 64
  integer(c_int32_t), parameter :: beeline_ok = 0
  integer(c_int32_t), parameter :: beeline_in_progress = 1
  integer(c_int32_t), parameter :: beeline_timeout = 2
  integer(c_int32_t), parameter :: beeline_no_resource = 3
  integer(c_int32_t), parameter :: beeline_deadline = 4
  integer(c_int32_t), parameter :: beeline_aborted = 5
  integer(c_int32_t), parameter :: beeline_unreachable = 6
  integer(c_int32_t), parameter :: beeline_invalid_argument = 7
  integer(c_int32_t), parameter :: beeline_unavailable = 8
  integer(c_int32_t), parameter :: beeline_peer_died = 9
  integer(c_int32_t), parameter :: beeline_internal = 10
  integer(c_int32_t), parameter :: beeline_host = 0
  integer(c_int32_t), parameter :: beeline_gpu = 1
  integer(c_int32_t), parameter :: beeline_heap_symmetric = 0
  integer(c_int32_t), parameter :: beeline_heap_pinned = 1
  integer(c_int32_t), parameter :: beeline_memory_device = 0
  integer(c_int32_t), parameter :: beeline_memory_pinned = 1
  integer(c_int32_t), parameter :: beeline_memory_host = 2
  integer(c_int32_t), parameter :: beeline_equal = 0
  integer(c_int32_t), parameter :: beeline_not_equal = 1
  integer(c_int32_t), parameter :: beeline_greater = 2
  integer(c_int32_t), parameter :: beeline_greater_equal = 3
  integer(c_int32_t), parameter :: beeline_less = 4
  integer(c_int32_t), parameter :: beeline_less_equal = 5
  integer(c_int32_t), parameter :: beeline_route_direct = 0
  integer(c_int32_t), parameter :: beeline_route_engine = 1
  integer(c_int32_t), parameter :: beeline_route_refused = 2
  integer(c_int32_t), parameter :: beeline_healthy = 0
  integer(c_int32_t), parameter :: beeline_failed = 1
  integer(c_int32_t), parameter :: beeline_left = 2
  integer(c_int32_t), parameter :: beeline_float32 = 0
  integer(c_int32_t), parameter :: beeline_float64 = 1
  integer(c_int32_t), parameter :: beeline_float16 = 2
  integer(c_int32_t), parameter :: beeline_bfloat16 = 3
  integer(c_int32_t), parameter :: beeline_int32 = 4
  integer(c_int32_t), parameter :: beeline_int64 = 5
  integer(c_int32_t), parameter :: beeline_uint8 = 6
  integer(c_int32_t), parameter :: beeline_uint32 = 7
  integer(c_int32_t), parameter :: beeline_uint64 = 8
  integer(c_int32_t), parameter :: beeline_sum = 0
  integer(c_int32_t), parameter :: beeline_product = 1
  integer(c_int32_t), parameter :: beeline_minimum = 2
  integer(c_int32_t), parameter :: beeline_maximum = 3
  integer(c_int32_t), parameter :: beeline_average = 4
  integer(c_int32_t), parameter :: beeline_bit_and = 5
  integer(c_int32_t), parameter :: beeline_bit_or = 6
  integer(c_int32_t), parameter :: beeline_bit_xor = 7
  integer(c_int32_t), parameter :: beeline_by_engine = 0
  integer(c_int32_t), parameter :: beeline_by_device_engine = 1
  integer(c_int32_t), parameter :: beeline_by_stream = 2
  integer(c_int32_t), parameter :: beeline_by_guarded_stream = 3
  integer(c_int64_t), parameter :: beeline_no_timeout = -1_c_int64_t
  integer(c_int64_t), parameter :: beeline_no_engine_bytes = -1_c_int64_t

  type, bind(c) :: beeline_device
    integer(c_int32_t) :: struct_bytes = 224
    integer(c_int32_t) :: kind = 0
    integer(c_int32_t) :: index = 0
    integer(c_int32_t) :: multiprocessors = 0
    integer(c_int64_t) :: memory_bytes = 0
    integer(c_int32_t) :: host_atomics = 0
    integer(c_int32_t) :: node = 0
    character(kind=c_char) :: uuid(64) = c_null_char
    character(kind=c_char) :: name(128) = c_null_char
  end type beeline_device

  type, bind(c) :: beeline_health
    integer(c_int32_t) :: struct_bytes = 256
    integer(c_int32_t) :: state = 0
    integer(c_int32_t) :: noticed_by = 0
    character(kind=c_char) :: reason(244) = c_null_char
  end type beeline_health

  type, bind(c) :: beeline_part
    integer(c_int32_t) :: struct_bytes = 32
    integer(c_int32_t) :: kind = 0
    integer(c_int64_t) :: bytes = 0
    type(c_ptr) :: address = c_null_ptr
    integer(c_int32_t) :: copies = 0
    integer(c_int32_t) :: reserved = 0
  end type beeline_part

  type, bind(c) :: beeline_queue_options
    integer(c_int32_t) :: struct_bytes = 12
    integer(c_int32_t) :: device_engine = 0
    integer(c_int32_t) :: engine_threads = 0
  end type beeline_queue_options

  type, bind(c) :: beeline_hybrid_options
    integer(c_int32_t) :: struct_bytes = 24
    integer(c_int32_t) :: chunks = 0
    integer(c_int64_t) :: threshold_bytes = 0
    integer(c_int64_t) :: chunk_bytes = 0
  end type beeline_hybrid_options

  type, bind(c) :: beeline_collective_options
    integer(c_int32_t) :: struct_bytes = 32
    integer(c_int32_t) :: sessions = 0
    integer(c_int64_t) :: packet_bytes = 0
    integer(c_int64_t) :: staging_bytes = 0
    integer(c_int64_t) :: engine_bytes = 0
  end type beeline_collective_options

  type, bind(c) :: beeline_call
    integer(c_int32_t) :: struct_bytes = 32
    integer(c_int32_t) :: algorithm = 0
    integer(c_int32_t) :: blocks = 0
    integer(c_int32_t) :: symmetric = 0
    integer(c_int32_t) :: overlapped = 0
    integer(c_int32_t) :: reserved = 0
    type(c_ptr) :: stream = c_null_ptr
  end type beeline_call

  type, bind(c) :: beeline_pieces
    integer(c_int32_t) :: struct_bytes = 40
    integer(c_int32_t) :: reserved = 0
    type(c_ptr) :: send_counts = c_null_ptr
    type(c_ptr) :: send_offsets = c_null_ptr
    type(c_ptr) :: receive_counts = c_null_ptr
    type(c_ptr) :: receive_offsets = c_null_ptr
  end type beeline_pieces

  type, bind(c) :: beeline_message_options
    integer(c_int32_t) :: struct_bytes = 32
    integer(c_int32_t) :: sessions = 0
    integer(c_int64_t) :: eager_bytes = 0
    integer(c_int64_t) :: chunk_bytes = 0
    integer(c_int32_t) :: depth = 0
    integer(c_int32_t) :: reserved = 0
  end type beeline_message_options

  type, bind(c) :: beeline_message_call
    integer(c_int32_t) :: struct_bytes = 24
    integer(c_int32_t) :: blocks = 0
    integer(c_int32_t) :: tag = 0
    integer(c_int32_t) :: reserved = 0
    type(c_ptr) :: stream = c_null_ptr
  end type beeline_message_call

  type, bind(c) :: beeline_message
    integer(c_int32_t) :: struct_bytes = 24
    integer(c_int32_t) :: peer = 0
    type(c_ptr) :: vector = c_null_ptr
    integer(c_size_t) :: count = 0
  end type beeline_message

  type, bind(c) :: beeline_chunk
    integer(c_int32_t) :: struct_bytes = 24
    integer(c_int32_t) :: owner = 0
    integer(c_size_t) :: first = 0
    integer(c_size_t) :: behind = 0
  end type beeline_chunk

  type, bind(c) :: beeline_trigger_options
    integer(c_int32_t) :: struct_bytes = 24
    integer(c_int32_t) :: by = 0
    integer(c_int32_t) :: tags = 0
    integer(c_int32_t) :: entries = 0
    integer(c_int32_t) :: queues = 0
    integer(c_int32_t) :: streams = 0
  end type beeline_trigger_options

  type, bind(c) :: beeline_condition
    integer(c_int32_t) :: struct_bytes = 32
    integer(c_int32_t) :: tag = 0
    integer(c_int64_t) :: threshold = 0
    integer(c_int64_t) :: deadline_ns = 0
    integer(c_int32_t) :: then = 0
    integer(c_int32_t) :: chains = 0
  end type beeline_condition

  type, bind(c) :: beeline_armed
    integer(c_int32_t) :: entry = 0
    integer(c_int32_t) :: turn = 0
  end type beeline_armed

  type, bind(c) :: beeline_context
    type(c_ptr) :: range = c_null_ptr
    type(c_ptr) :: abort_words = c_null_ptr
    type(c_ptr) :: host_abort_words = c_null_ptr
    type(c_ptr) :: waits = c_null_ptr
    type(c_ptr) :: wait_claims = c_null_ptr
    type(c_ptr) :: sync = c_null_ptr
    integer(c_int64_t) :: deadline_ns = 0
    integer(c_int32_t) :: slot_shift = 0
    integer(c_int32_t) :: slots = 0
    integer(c_int32_t) :: polling = 0
    integer(c_int32_t) :: team = 0
    integer(c_int32_t) :: rank = 0
    integer(c_int32_t) :: size = 0
    integer(c_int32_t) :: own_world_rank = 0
    integer(c_int8_t) :: mixed = 0
    integer(c_int8_t) :: resident = 0
    integer(c_int16_t) :: kernel = 0
    integer(c_int64_t) :: gpu_members = 0
    integer(c_int64_t) :: guarded_offsets = 0
    type(c_ptr) :: routes = c_null_ptr
    integer(c_int64_t) :: direct_places = 0
    integer(c_int32_t) :: first_place = 0
    integer(c_int32_t) :: places = 0
    integer(c_int32_t) :: has_routes = 0
    integer(c_int32_t) :: distances(64) = 0
    integer(c_int64_t) :: heap_end = 0
    integer(c_int64_t) :: pinned_heap_end = 0
    type(c_ptr) :: checks = c_null_ptr
  end type beeline_context

  interface
    function beeline_last_error() result(answer) bind(c)
      import
      type(c_ptr) :: answer
    end function
    function beeline_status_name(status) result(answer) bind(c)
      import
      integer(c_int32_t), value :: status
      type(c_ptr) :: answer
    end function
    function beeline_version() result(answer) bind(c)
      import
      integer(c_int32_t) :: answer
    end function
    function beeline_config_create(config) result(answer) bind(c)
      import
      type(c_ptr), intent(out) :: config
      integer(c_int32_t) :: answer
    end function
    function beeline_config_set(config, name, value) result(answer) bind(c)
      import
      type(c_ptr), value :: config
      character(kind=c_char), intent(in) :: name(*), value(*)
      integer(c_int32_t) :: answer
    end function
    function beeline_config_destroy(config) result(answer) bind(c)
      import
      type(c_ptr), value :: config
      integer(c_int32_t) :: answer
    end function
    function beeline_world_create_as(version, config, world) result(answer) bind(c)
      import
      integer(c_int32_t), value :: version
      type(c_ptr), value :: config
      type(c_ptr), intent(out) :: world
      integer(c_int32_t) :: answer
    end function
    function beeline_run_as(version, config, body, argument, exit_status) result(answer) bind(c)
      import
      integer(c_int32_t), value :: version
      type(c_ptr), value :: config, argument
      type(c_funptr), value :: body
      integer(c_int32_t), intent(out) :: exit_status
      integer(c_int32_t) :: answer
    end function
    function beeline_world_close(world) result(answer) bind(c)
      import
      type(c_ptr), value :: world
      integer(c_int32_t) :: answer
    end function
    function beeline_world_team(world) result(answer) bind(c)
      import
      type(c_ptr), value :: world
      type(c_ptr) :: answer
    end function
    function beeline_world_device(world, rank, device) result(answer) bind(c)
      import
      type(c_ptr), value :: world
      integer(c_int32_t), value :: rank
      type(beeline_device), intent(in out) :: device
      integer(c_int32_t) :: answer
    end function
    function beeline_world_health(world, rank, health) result(answer) bind(c)
      import
      type(c_ptr), value :: world
      integer(c_int32_t), value :: rank
      type(beeline_health), intent(in out) :: health
      integer(c_int32_t) :: answer
    end function
    function beeline_world_check(world) result(answer) bind(c)
      import
      type(c_ptr), value :: world
      integer(c_int32_t) :: answer
    end function
    function beeline_world_abort(world, reason) result(answer) bind(c)
      import
      type(c_ptr), value :: world
      character(kind=c_char), intent(in) :: reason(*)
      integer(c_int32_t) :: answer
    end function
    function beeline_world_survivors(world, team) result(answer) bind(c)
      import
      type(c_ptr), value :: world
      type(c_ptr), intent(out) :: team
      integer(c_int32_t) :: answer
    end function
    function beeline_team_create(world, ranks, count, team) result(answer) bind(c)
      import
      type(c_ptr), value :: world
      integer(c_int32_t), intent(in) :: ranks(*)
      integer(c_int32_t), value :: count
      type(c_ptr), intent(out) :: team
      integer(c_int32_t) :: answer
    end function
    function beeline_team_destroy(team) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_int32_t) :: answer
    end function
    function beeline_team_rank(team) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_int32_t) :: answer
    end function
    function beeline_team_size(team) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_int32_t) :: answer
    end function
    function beeline_team_world_rank(team, rank) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_int32_t), value :: rank
      integer(c_int32_t) :: answer
    end function
    function beeline_team_route(team, rank) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_int32_t), value :: rank
      integer(c_int32_t) :: answer
    end function
    function beeline_team_failed(team) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_int32_t) :: answer
    end function
    function beeline_barrier(team, timeout_ns) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_allgather_bytes(team, mine, bytes, all, most_bytes, sizes) result(answer) &
        bind(c)
      import
      type(c_ptr), value :: team, mine, all, sizes
      integer(c_size_t), value :: bytes, most_bytes
      integer(c_int32_t) :: answer
    end function
    function beeline_allocate(team, bytes, heap, memory) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_size_t), value :: bytes
      integer(c_int32_t), value :: heap
      type(c_ptr), intent(out) :: memory
      integer(c_int32_t) :: answer
    end function
    function beeline_allocate_signals(team, count, heap, signals) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: heap
      type(c_ptr), intent(out) :: signals
      integer(c_int32_t) :: answer
    end function
    function beeline_free(team, memory) result(answer) bind(c)
      import
      type(c_ptr), value :: team, memory
      integer(c_int32_t) :: answer
    end function
    function beeline_address_on(team, local, peer, address) result(answer) bind(c)
      import
      type(c_ptr), value :: team, local
      integer(c_int32_t), value :: peer
      type(c_ptr), intent(out) :: address
      integer(c_int32_t) :: answer
    end function
    function beeline_segment_create(world, kind, bytes, segment) result(answer) bind(c)
      import
      type(c_ptr), value :: world
      integer(c_int32_t), value :: kind
      integer(c_size_t), value :: bytes
      type(c_ptr), intent(out) :: segment
      integer(c_int32_t) :: answer
    end function
    function beeline_segment_part(segment, rank, part) result(answer) bind(c)
      import
      type(c_ptr), value :: segment
      integer(c_int32_t), value :: rank
      type(beeline_part), intent(in out) :: part
      integer(c_int32_t) :: answer
    end function
    function beeline_segment_destroy(segment) result(answer) bind(c)
      import
      type(c_ptr), value :: segment
      integer(c_int32_t) :: answer
    end function
    function beeline_register(world, pointer, bytes, registered) result(answer) bind(c)
      import
      type(c_ptr), value :: world, pointer
      integer(c_size_t), value :: bytes
      type(c_ptr), intent(out) :: registered
      integer(c_int32_t) :: answer
    end function
    function beeline_registered_part(registered, rank, part) result(answer) bind(c)
      import
      type(c_ptr), value :: registered
      integer(c_int32_t), value :: rank
      type(beeline_part), intent(in out) :: part
      integer(c_int32_t) :: answer
    end function
    function beeline_registered_alias(registered, alias) result(answer) bind(c)
      import
      type(c_ptr), value :: registered
      type(c_ptr), intent(out) :: alias
      integer(c_int32_t) :: answer
    end function
    function beeline_symmetric_address(world, address, symmetric) result(answer) bind(c)
      import
      type(c_ptr), value :: world, address
      type(c_ptr), intent(out) :: symmetric
      integer(c_int32_t) :: answer
    end function
    function beeline_memory_kind(address, kind) result(answer) bind(c)
      import
      type(c_ptr), value :: address, kind
      integer(c_int32_t) :: answer
    end function
    function beeline_deregister(registered) result(answer) bind(c)
      import
      type(c_ptr), value :: registered
      integer(c_int32_t) :: answer
    end function
    function beeline_copy(world, destination, source, bytes) result(answer) bind(c)
      import
      type(c_ptr), value :: world, destination, source
      integer(c_size_t), value :: bytes
      integer(c_int32_t) :: answer
    end function
    function beeline_copy_to_registered(registered, rank, offset, source, bytes) result(answer) &
        bind(c)
      import
      type(c_ptr), value :: registered, source
      integer(c_int32_t), value :: rank
      integer(c_size_t), value :: offset, bytes
      integer(c_int32_t) :: answer
    end function
    function beeline_copy_from_registered(destination, registered, rank, offset, bytes) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: destination, registered
      integer(c_int32_t), value :: rank
      integer(c_size_t), value :: offset, bytes
      integer(c_int32_t) :: answer
    end function
    function beeline_default_stream(world) result(answer) bind(c)
      import
      type(c_ptr), value :: world
      type(c_ptr) :: answer
    end function
    function beeline_stream_create(world, high_priority, stream) result(answer) bind(c)
      import
      type(c_ptr), value :: world
      integer(c_int32_t), value :: high_priority
      type(c_ptr), intent(out) :: stream
      integer(c_int32_t) :: answer
    end function
    function beeline_stream_adopt(world, native, stream) result(answer) bind(c)
      import
      type(c_ptr), value :: world, native
      type(c_ptr), intent(out) :: stream
      integer(c_int32_t) :: answer
    end function
    function beeline_stream_destroy(stream) result(answer) bind(c)
      import
      type(c_ptr), value :: stream
      integer(c_int32_t) :: answer
    end function
    function beeline_stream_native(stream) result(answer) bind(c)
      import
      type(c_ptr), value :: stream
      type(c_ptr) :: answer
    end function
    function beeline_synchronize(stream, timeout_ns) result(answer) bind(c)
      import
      type(c_ptr), value :: stream
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_copy_on_stream(stream, destination, source, bytes) result(answer) bind(c)
      import
      type(c_ptr), value :: stream, destination, source
      integer(c_size_t), value :: bytes
      integer(c_int32_t) :: answer
    end function
    function beeline_fill_on_stream(stream, destination, value, bytes) result(answer) bind(c)
      import
      type(c_ptr), value :: stream, destination
      integer(c_int8_t), value :: value
      integer(c_size_t), value :: bytes
      integer(c_int32_t) :: answer
    end function
    function beeline_event_create(stream, event) result(answer) bind(c)
      import
      type(c_ptr), value :: stream
      type(c_ptr), intent(out) :: event
      integer(c_int32_t) :: answer
    end function
    function beeline_event_destroy(event) result(answer) bind(c)
      import
      type(c_ptr), value :: event
      integer(c_int32_t) :: answer
    end function
    function beeline_event_record(event, stream) result(answer) bind(c)
      import
      type(c_ptr), value :: event, stream
      integer(c_int32_t) :: answer
    end function
    function beeline_stream_await(stream, event) result(answer) bind(c)
      import
      type(c_ptr), value :: stream, event
      integer(c_int32_t) :: answer
    end function
    function beeline_event_synchronize(event, timeout_ns) result(answer) bind(c)
      import
      type(c_ptr), value :: event
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_put_on_stream(team, destination, source, bytes, peer, stream) result(answer) &
        bind(c)
      import
      type(c_ptr), value :: team, destination, source, stream
      integer(c_size_t), value :: bytes
      integer(c_int32_t), value :: peer
      integer(c_int32_t) :: answer
    end function
    function beeline_signal_on_stream(team, signal, value, peer, stream) result(answer) bind(c)
      import
      type(c_ptr), value :: team, signal, stream
      integer(c_int64_t), value :: value
      integer(c_int32_t), value :: peer
      integer(c_int32_t) :: answer
    end function
    function beeline_put_signal_on_stream(team, destination, source, bytes, signal, value, peer, &
        stream) result(answer) bind(c)
      import
      type(c_ptr), value :: team, destination, source, signal, stream
      integer(c_size_t), value :: bytes
      integer(c_int64_t), value :: value
      integer(c_int32_t), value :: peer
      integer(c_int32_t) :: answer
    end function
    function beeline_wait_on_stream(team, signal, value, peer, stream) result(answer) bind(c)
      import
      type(c_ptr), value :: team, signal, stream
      integer(c_int64_t), value :: value
      integer(c_int32_t), value :: peer
      integer(c_int32_t) :: answer
    end function
    function beeline_put(team, destination, source, bytes, peer, queue) result(answer) bind(c)
      import
      type(c_ptr), value :: team, destination, source
      integer(c_size_t), value :: bytes
      integer(c_int32_t), value :: peer, queue
      integer(c_int32_t) :: answer
    end function
    function beeline_get(team, destination, source, bytes, peer) result(answer) bind(c)
      import
      type(c_ptr), value :: team, destination, source
      integer(c_size_t), value :: bytes
      integer(c_int32_t), value :: peer
      integer(c_int32_t) :: answer
    end function
    function beeline_signal(team, signal, value, peer, queue) result(answer) bind(c)
      import
      type(c_ptr), value :: team, signal
      integer(c_int64_t), value :: value
      integer(c_int32_t), value :: peer, queue
      integer(c_int32_t) :: answer
    end function
    function beeline_signal_add(team, signal, value, peer, queue) result(answer) bind(c)
      import
      type(c_ptr), value :: team, signal
      integer(c_int64_t), value :: value
      integer(c_int32_t), value :: peer, queue
      integer(c_int32_t) :: answer
    end function
    function beeline_put_signal(team, destination, source, bytes, signal, value, peer, queue) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: team, destination, source, signal
      integer(c_size_t), value :: bytes
      integer(c_int64_t), value :: value
      integer(c_int32_t), value :: peer, queue
      integer(c_int32_t) :: answer
    end function
    function beeline_put_signal_add(team, destination, source, bytes, signal, value, peer, queue) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: team, destination, source, signal
      integer(c_size_t), value :: bytes
      integer(c_int64_t), value :: value
      integer(c_int32_t), value :: peer, queue
      integer(c_int32_t) :: answer
    end function
    function beeline_wait(team, signal, compare, value, peer, timeout_ns) result(answer) bind(c)
      import
      type(c_ptr), value :: team, signal
      integer(c_int32_t), value :: compare, peer
      integer(c_int64_t), value :: value, timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_wait_any(team, signals, count, timeout_ns, index) result(answer) bind(c)
      import
      type(c_ptr), value :: team, signals
      integer(c_int32_t), value :: count
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t), intent(out) :: index
      integer(c_int32_t) :: answer
    end function
    function beeline_test_signal(signal, compare, value) result(answer) bind(c)
      import
      type(c_ptr), value :: signal
      integer(c_int32_t), value :: compare
      integer(c_int64_t), value :: value
      integer(c_int32_t) :: answer
    end function
    function beeline_exchange(team, signal, value, before) result(answer) bind(c)
      import
      type(c_ptr), value :: team, signal
      integer(c_int64_t), value :: value
      integer(c_int64_t), intent(out) :: before
      integer(c_int32_t) :: answer
    end function
    function beeline_fetch_add(team, target, value, peer, before) result(answer) bind(c)
      import
      type(c_ptr), value :: team, target
      integer(c_int64_t), value :: value
      integer(c_int32_t), value :: peer
      integer(c_int64_t), intent(out) :: before
      integer(c_int32_t) :: answer
    end function
    function beeline_compare_swap(team, target, expected, value, peer, before) result(answer) &
        bind(c)
      import
      type(c_ptr), value :: team, target
      integer(c_int64_t), value :: expected, value
      integer(c_int32_t), value :: peer
      integer(c_int64_t), intent(out) :: before
      integer(c_int32_t) :: answer
    end function
    function beeline_flush(team, queue) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_int32_t), value :: queue
      integer(c_int32_t) :: answer
    end function
    function beeline_flush_within(team, queue, timeout_ns) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_int32_t), value :: queue
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_quiet(team, queue) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_int32_t), value :: queue
      integer(c_int32_t) :: answer
    end function
    function beeline_quiet_within(team, queue, timeout_ns) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_int32_t), value :: queue
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_queues_create(team, count, options, queues) result(answer) bind(c)
      import
      type(c_ptr), value :: team, options
      integer(c_int32_t), value :: count
      type(c_ptr), intent(out) :: queues
      integer(c_int32_t) :: answer
    end function
    function beeline_queues_destroy(queues) result(answer) bind(c)
      import
      type(c_ptr), value :: queues
      integer(c_int32_t) :: answer
    end function
    function beeline_post_put(queues, queue, destination, source, bytes, peer, timeout_ns) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: queues, destination, source
      integer(c_int32_t), value :: queue, peer
      integer(c_size_t), value :: bytes
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_post_get(queues, queue, destination, source, bytes, peer, timeout_ns) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: queues, destination, source
      integer(c_int32_t), value :: queue, peer
      integer(c_size_t), value :: bytes
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_post_signal(queues, queue, signal, value, peer, timeout_ns) result(answer) &
        bind(c)
      import
      type(c_ptr), value :: queues, signal
      integer(c_int32_t), value :: queue, peer
      integer(c_int64_t), value :: value, timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_post_put_signal(queues, queue, destination, source, bytes, signal, value, peer, &
        timeout_ns) result(answer) bind(c)
      import
      type(c_ptr), value :: queues, destination, source, signal
      integer(c_int32_t), value :: queue, peer
      integer(c_size_t), value :: bytes
      integer(c_int64_t), value :: value, timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_queue_flush(queues, queue, timeout_ns) result(answer) bind(c)
      import
      type(c_ptr), value :: queues
      integer(c_int32_t), value :: queue
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_queue_quiet(queues, queue, timeout_ns) result(answer) bind(c)
      import
      type(c_ptr), value :: queues
      integer(c_int32_t), value :: queue
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_batch_create(team, capacity, batch) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_int32_t), value :: capacity
      type(c_ptr), intent(out) :: batch
      integer(c_int32_t) :: answer
    end function
    function beeline_batch_destroy(batch) result(answer) bind(c)
      import
      type(c_ptr), value :: batch
      integer(c_int32_t) :: answer
    end function
    function beeline_batch_begin(batch, peer, queue) result(answer) bind(c)
      import
      type(c_ptr), value :: batch
      integer(c_int32_t), value :: peer, queue
      integer(c_int32_t) :: answer
    end function
    function beeline_batch_put(batch, destination, source, bytes) result(answer) bind(c)
      import
      type(c_ptr), value :: batch, destination, source
      integer(c_size_t), value :: bytes
      integer(c_int32_t) :: answer
    end function
    function beeline_batch_signal(batch, signal, value) result(answer) bind(c)
      import
      type(c_ptr), value :: batch, signal
      integer(c_int64_t), value :: value
      integer(c_int32_t) :: answer
    end function
    function beeline_batch_signal_add(batch, signal, value) result(answer) bind(c)
      import
      type(c_ptr), value :: batch, signal
      integer(c_int64_t), value :: value
      integer(c_int32_t) :: answer
    end function
    function beeline_batch_end(batch) result(answer) bind(c)
      import
      type(c_ptr), value :: batch
      integer(c_int32_t) :: answer
    end function
    function beeline_hybrid_create(team, options, hybrid) result(answer) bind(c)
      import
      type(c_ptr), value :: team, options
      type(c_ptr), intent(out) :: hybrid
      integer(c_int32_t) :: answer
    end function
    function beeline_hybrid_destroy(hybrid) result(answer) bind(c)
      import
      type(c_ptr), value :: hybrid
      integer(c_int32_t) :: answer
    end function
    function beeline_hybrid_set(hybrid, options) result(answer) bind(c)
      import
      type(c_ptr), value :: hybrid, options
      integer(c_int32_t) :: answer
    end function
    function beeline_hybrid_is_staged(hybrid, destination, source, bytes, staged) result(answer) &
        bind(c)
      import
      type(c_ptr), value :: hybrid, destination, source
      integer(c_size_t), value :: bytes
      integer(c_int32_t), intent(out) :: staged
      integer(c_int32_t) :: answer
    end function
    function beeline_hybrid_copy(hybrid, destination, source, bytes, timeout_ns) result(answer) &
        bind(c)
      import
      type(c_ptr), value :: hybrid, destination, source
      integer(c_size_t), value :: bytes
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_hybrid_put(hybrid, destination, source, bytes, peer, timeout_ns) result(answer) &
        bind(c)
      import
      type(c_ptr), value :: hybrid, destination, source
      integer(c_size_t), value :: bytes
      integer(c_int32_t), value :: peer
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_hybrid_copy_on_stream(hybrid, destination, source, bytes, stream) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: hybrid, destination, source, stream
      integer(c_size_t), value :: bytes
      integer(c_int32_t) :: answer
    end function
    function beeline_hybrid_put_on_stream(hybrid, destination, source, bytes, peer, stream) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: hybrid, destination, source, stream
      integer(c_size_t), value :: bytes
      integer(c_int32_t), value :: peer
      integer(c_int32_t) :: answer
    end function
    function beeline_algorithm(name) result(answer) bind(c)
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t) :: answer
    end function
    function beeline_collectives_create(team, options, collectives) result(answer) bind(c)
      import
      type(c_ptr), value :: team, options
      type(c_ptr), intent(out) :: collectives
      integer(c_int32_t) :: answer
    end function
    function beeline_collectives_destroy(collectives) result(answer) bind(c)
      import
      type(c_ptr), value :: collectives
      integer(c_int32_t) :: answer
    end function
    function beeline_allreduce(collectives, destination, source, count, type, reduction, call) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: collectives, destination, source, call
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: type, reduction
      integer(c_int32_t) :: answer
    end function
    function beeline_reduce(collectives, destination, source, count, type, reduction, root, call) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: collectives, destination, source, call
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: type, reduction, root
      integer(c_int32_t) :: answer
    end function
    function beeline_reduce_scatter(collectives, destination, source, count, type, reduction, call) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: collectives, destination, source, call
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: type, reduction
      integer(c_int32_t) :: answer
    end function
    function beeline_broadcast(collectives, destination, source, count, type, root, call) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: collectives, destination, source, call
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: type, root
      integer(c_int32_t) :: answer
    end function
    function beeline_scatter(collectives, destination, source, count, type, root, call) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: collectives, destination, source, call
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: type, root
      integer(c_int32_t) :: answer
    end function
    function beeline_gather(collectives, destination, source, count, type, root, call) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: collectives, destination, source, call
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: type, root
      integer(c_int32_t) :: answer
    end function
    function beeline_allgather(collectives, destination, source, count, type, call) result(answer) &
        bind(c)
      import
      type(c_ptr), value :: collectives, destination, source, call
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: type
      integer(c_int32_t) :: answer
    end function
    function beeline_alltoall(collectives, destination, source, count, type, call) result(answer) &
        bind(c)
      import
      type(c_ptr), value :: collectives, destination, source, call
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: type
      integer(c_int32_t) :: answer
    end function
    function beeline_alltoallv(collectives, destination, source, pieces, type, call) result(answer) &
        bind(c)
      import
      type(c_ptr), value :: collectives, destination, source, pieces, call
      integer(c_int32_t), value :: type
      integer(c_int32_t) :: answer
    end function
    function beeline_collective_barrier(collectives, stream) result(answer) bind(c)
      import
      type(c_ptr), value :: collectives, stream
      integer(c_int32_t) :: answer
    end function
    function beeline_messages_create(team, options, messages) result(answer) bind(c)
      import
      type(c_ptr), value :: team, options
      type(c_ptr), intent(out) :: messages
      integer(c_int32_t) :: answer
    end function
    function beeline_messages_destroy(messages) result(answer) bind(c)
      import
      type(c_ptr), value :: messages
      integer(c_int32_t) :: answer
    end function
    function beeline_send(messages, source, count, type, peer, call) result(answer) bind(c)
      import
      type(c_ptr), value :: messages, source, call
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: type, peer
      integer(c_int32_t) :: answer
    end function
    function beeline_receive(messages, destination, count, type, peer, call) result(answer) bind(c)
      import
      type(c_ptr), value :: messages, destination, call
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: type, peer
      integer(c_int32_t) :: answer
    end function
    function beeline_send_receive(messages, sent, received, type, call) result(answer) bind(c)
      import
      type(c_ptr), value :: messages, sent, received, call
      integer(c_int32_t), value :: type
      integer(c_int32_t) :: answer
    end function
    function beeline_probe(messages, peer) result(answer) bind(c)
      import
      type(c_ptr), value :: messages
      integer(c_int32_t), value :: peer
      integer(c_int32_t) :: answer
    end function
    function beeline_array_create(world, count, element_bytes, chunk_elements, kind, array) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: world
      integer(c_size_t), value :: count, element_bytes, chunk_elements
      integer(c_int32_t), value :: kind
      type(c_ptr), intent(out) :: array
      integer(c_int32_t) :: answer
    end function
    function beeline_array_destroy(array) result(answer) bind(c)
      import
      type(c_ptr), value :: array
      integer(c_int32_t) :: answer
    end function
    function beeline_array_data(array) result(answer) bind(c)
      import
      type(c_ptr), value :: array
      type(c_ptr) :: answer
    end function
    function beeline_array_chunk(array, index, chunk) result(answer) bind(c)
      import
      type(c_ptr), value :: array
      integer(c_size_t), value :: index
      type(beeline_chunk), intent(in out) :: chunk
      integer(c_int32_t) :: answer
    end function
    function beeline_triggers_create(team, options, triggers) result(answer) bind(c)
      import
      type(c_ptr), value :: team, options
      type(c_ptr), intent(out) :: triggers
      integer(c_int32_t) :: answer
    end function
    function beeline_triggers_destroy(triggers) result(answer) bind(c)
      import
      type(c_ptr), value :: triggers
      integer(c_int32_t) :: answer
    end function
    function beeline_arm_put(triggers, when, destination, source, bytes, signal, value, peer, armed) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: triggers, when, destination, source, signal, armed
      integer(c_size_t), value :: bytes
      integer(c_int64_t), value :: value
      integer(c_int32_t), value :: peer
      integer(c_int32_t) :: answer
    end function
    function beeline_arm_get(triggers, when, destination, source, bytes, signal, value, peer, armed) &
        result(answer) bind(c)
      import
      type(c_ptr), value :: triggers, when, destination, source, signal, armed
      integer(c_size_t), value :: bytes
      integer(c_int64_t), value :: value
      integer(c_int32_t), value :: peer
      integer(c_int32_t) :: answer
    end function
    function beeline_arm_signal(triggers, when, signal, value, peer, armed) result(answer) bind(c)
      import
      type(c_ptr), value :: triggers, when, signal, armed
      integer(c_int64_t), value :: value
      integer(c_int32_t), value :: peer
      integer(c_int32_t) :: answer
    end function
    function beeline_trigger(triggers, tag, count) result(answer) bind(c)
      import
      type(c_ptr), value :: triggers
      integer(c_int32_t), value :: tag
      integer(c_int64_t), value :: count
      integer(c_int32_t) :: answer
    end function
    function beeline_trigger_count(triggers, tag, reached) result(answer) bind(c)
      import
      type(c_ptr), value :: triggers
      integer(c_int32_t), value :: tag
      integer(c_int64_t), intent(out) :: reached
      integer(c_int32_t) :: answer
    end function
    function beeline_armed_wait(triggers, armed, timeout_ns) result(answer) bind(c)
      import
      type(c_ptr), value :: triggers, armed
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function
    function beeline_armed_cancel(triggers, armed) result(answer) bind(c)
      import
      type(c_ptr), value :: triggers, armed
      integer(c_int32_t) :: answer
    end function
    function beeline_team_context(team, struct_bytes, context) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_size_t), value :: struct_bytes
      type(beeline_context), intent(in out) :: context
      integer(c_int32_t) :: answer
    end function
    function beeline_team_host_context(team, struct_bytes, context) result(answer) bind(c)
      import
      type(c_ptr), value :: team
      integer(c_size_t), value :: struct_bytes
      type(beeline_context), intent(in out) :: context
      integer(c_int32_t) :: answer
    end function
  end interface

contains

  function beeline_world_create(config, world) result(status)
    type(c_ptr), value :: config
    type(c_ptr), intent(out) :: world
    integer(c_int32_t) :: status
    status = beeline_world_create_as(beeline_headers, config, world)
  end function

  function beeline_run(config, body, argument, exit_status) result(status)
    type(c_ptr), value :: config, argument
    type(c_funptr), value :: body
    integer(c_int32_t), intent(out) :: exit_status
    integer(c_int32_t) :: status
    status = beeline_run_as(beeline_headers, config, body, argument, exit_status)
  end function

  ! The text of the calling thread's last failure.
  function beeline_error_text() result(text)
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: length
    call c_f_pointer(beeline_last_error(), letters, [huge(0)])
    length = 0
    do while (letters(length + 1) /= c_null_char)
      length = length + 1
    end do
    allocate (character(len=length) :: text)
    text = transfer(letters(1:length), text)
  end function

end module beeline
