// SPDX-License-Identifier: Apache-2.0
/// @file
/// Types and constants of GASPI 17.1, for C99 and C++. Where the standard leaves a type to the implementation, it is
/// the one that users of GPI-2 rely on, widened where the two differ.
#ifndef GASPI_TYPES_H
#define GASPI_TYPES_H

#if defined(__cplusplus)
#define GASPI_BEGIN extern "C" {
#define GASPI_END }
#else
#define GASPI_BEGIN
#define GASPI_END
#endif

GASPI_BEGIN

/// The version of the standard. `gaspi_version` returns 17.1.
#define GASPI_MAJOR_VERSION 17
#define GASPI_MINOR_VERSION 1
#define GASPI_REVISION 0

typedef char gaspi_char;
typedef unsigned char gaspi_uchar;
typedef short gaspi_short;
typedef unsigned short gaspi_ushort;
typedef int gaspi_int;
typedef unsigned int gaspi_uint;
typedef long gaspi_long;
typedef unsigned long gaspi_ulong;
typedef float gaspi_float;
typedef double gaspi_double;

typedef unsigned short gaspi_rank_t;
typedef unsigned char gaspi_segment_id_t;
typedef unsigned long gaspi_offset_t;  ///< bytes from the start of a segment
typedef unsigned long gaspi_size_t;    ///< bytes
typedef unsigned char gaspi_queue_id_t;
typedef unsigned int gaspi_notification_t;
typedef unsigned short gaspi_notification_id_t;
typedef unsigned long gaspi_atomic_value_t;
typedef unsigned long gaspi_timeout_t;  ///< milliseconds, GASPI_TEST or GASPI_BLOCK
typedef unsigned int gaspi_number_t;
typedef unsigned char gaspi_group_t;
typedef void* gaspi_pointer_t;
typedef const void* gaspi_const_pointer_t;
typedef char* gaspi_string_t;
typedef float gaspi_time_t;  ///< milliseconds
typedef unsigned long gaspi_cycles_t;
typedef unsigned int gaspi_statistic_counter_t;

/// Looks once, and does the work that is possible at once (4.2.1).
#define GASPI_TEST ((gaspi_timeout_t)0)
/// Waits as long as the ranks that the call needs are healthy (4.2.1).
#define GASPI_BLOCK (~(gaspi_timeout_t)0)
/// The group of all ranks (6.2.2).
#define GASPI_GROUP_ALL ((gaspi_group_t)0)

/// Results (3.11, 4.2.2). GASPI_TIMEOUT and GASPI_QUEUE_FULL are no errors. GASPI_ERROR is a failure while the call
/// ran: a rank that it needs has failed, or memory or the operating system refused. GASPI_ERR_... name a call that was
/// refused before anything was touched.
typedef enum {
  GASPI_ERROR = -1,
  GASPI_SUCCESS = 0,
  GASPI_TIMEOUT = 1,             ///< time is up; the same call goes on
  GASPI_ERR_EMFILE = 2,          ///< too many open files
  GASPI_ERR_ENV = 3,             ///< the environment (BEELINE_..., a launcher's) is not valid
  GASPI_ERR_SN_PORT = 4,         ///< a port is not valid
  GASPI_ERR_CONFIG = 5,          ///< a value of the configuration is not valid
  GASPI_ERR_NOINIT = 6,          ///< before `gaspi_proc_init` or after `gaspi_proc_term`
  GASPI_ERR_INITED = 7,          ///< after `gaspi_proc_init`
  GASPI_ERR_NULLPTR = 8,         ///< a null pointer
  GASPI_ERR_INV_SEGSIZE = 9,     ///< a segment of this size cannot be
  GASPI_ERR_INV_SEG = 10,        ///< no such segment, or it is not registered with this rank
  GASPI_ERR_INV_GROUP = 11,      ///< no such group, or it is not committed
  GASPI_ERR_INV_RANK = 12,       ///< no such rank
  GASPI_ERR_INV_QUEUE = 13,      ///< no such queue
  GASPI_ERR_INV_LOC_OFF = 14,    ///< offset and size reach beyond the local segment
  GASPI_ERR_INV_REM_OFF = 15,    ///< offset and size reach beyond the remote segment
  GASPI_ERR_INV_COMMSIZE = 16,   ///< zero bytes, or more than a transfer can have
  GASPI_ERR_INV_NOTIF_VAL = 17,  ///< a notification of value 0
  GASPI_ERR_INV_NOTIF_ID = 18,   ///< a notification beyond `gaspi_notification_num`
  GASPI_ERR_INV_NUM = 19,        ///< a number of elements is out of range
  GASPI_ERR_INV_SIZE = 20,       ///< a size is out of range
  GASPI_ERR_MANY_SEG = 21,       ///< no free segment
  GASPI_ERR_MANY_GRP = 22,       ///< no free group
  GASPI_QUEUE_FULL = 23,         ///< the queue has no free entry: nothing was posted
  GASPI_ERR_UNALIGN_OFF = 24,    ///< an offset is not a multiple of 8
  GASPI_ERR_ACTIVE_COLL = 25,    ///< another collective call of the same kind is under way in this group
  GASPI_ERR_DEVICE = 26,         ///< the device or the network refused
  GASPI_ERR_SN = 27,             ///< the ranks' control messages failed
  GASPI_ERR_MEMALLOC = 28        ///< memory is exhausted
} gaspi_return_t;

/// The state of a rank (4.2.3): one byte each, so that vectors of bytes serve, too.
typedef unsigned char gaspi_state_t;
enum {
  GASPI_STATE_HEALTHY = 0,  ///< communication is possible
  GASPI_STATE_CORRUPT = 1   ///< the rank has failed, or was killed
};
typedef gaspi_state_t* gaspi_state_vector_t;  ///< [ranks]

/// How a segment is allocated (4.2.4): bits, combined by `|`.
typedef unsigned long gaspi_alloc_t;
enum {
  GASPI_MEM_UNINITIALIZED = 0,
  GASPI_ALLOC_DEFAULT = 0,
  GASPI_MEM_DEFAULT = 0,
  GASPI_MEM_INITIALIZED = 1,  ///< all bytes are zero
  GASPI_MEM_GPU = 2,          ///< memory of the rank's GPU; without it host memory
  GASPI_MEM_GPU_FLAGS = 4     ///< the segment's notifications lie in GPU memory, where kernels wait for them
};

/// The kind of memory that a program gives to `gaspi_segment_bind` and `gaspi_segment_use`.
typedef int gaspi_memory_description_t;
enum { GASPI_MEMORY_HOST = 0, GASPI_MEMORY_GPU = 1 };

/// The network. Kept for programs that set it: Beeline chooses the transport (docs/network.md).
typedef enum { GASPI_IB = 0, GASPI_ROCE = 1, GASPI_ETHERNET = 2, GASPI_GEMINI = 3, GASPI_ARIES = 4 } gaspi_network_t;

/// When ranks connect (`build_infrastructure`, 5.1).
typedef enum {
  GASPI_TOPOLOGY_NONE = 0,    ///< by `gaspi_connect` only
  GASPI_TOPOLOGY_STATIC = 1,  ///< all ranks, in `gaspi_proc_init`
  GASPI_TOPOLOGY_DYNAMIC = 2  ///< a rank, with the first call that needs it
} gaspi_topology_t;

/// Predefined reductions (11.3.2), and types of elements (11.3.3).
typedef enum { GASPI_OP_MIN = 0, GASPI_OP_MAX = 1, GASPI_OP_SUM = 2 } gaspi_operation_t;
typedef enum {
  GASPI_TYPE_INT = 0,
  GASPI_TYPE_UINT = 1,
  GASPI_TYPE_FLOAT = 2,
  GASPI_TYPE_DOUBLE = 3,
  GASPI_TYPE_LONG = 4,
  GASPI_TYPE_ULONG = 5
} gaspi_datatype_t;

typedef void* gaspi_reduce_state_t;
/// A reduction of the program (11.4.2): combines `num` elements of `element_size` bytes each, and writes them to
/// `result`, which may be one of the operands. It is commutative and associative, and calls no function of GASPI.
/// Returns GASPI_SUCCESS, or another value, with which `gaspi_allreduce_user` ends.
typedef gaspi_return_t (*gaspi_reduce_operation_t)(gaspi_pointer_t operand_one, gaspi_pointer_t operand_two,
                                                   gaspi_pointer_t result, gaspi_reduce_state_t state,
                                                   gaspi_number_t num, gaspi_size_t element_size,
                                                   gaspi_timeout_t timeout_ms);

/// What the argument of a counter means (14.1.2).
typedef enum { GASPI_STATISTIC_ARGUMENT_NONE = 0, GASPI_STATISTIC_ARGUMENT_RANK = 1 } gaspi_statistic_argument_t;

/// Settings of network devices. They have no meaning here.
typedef struct {
  gaspi_network_t network_type;
  struct {
    struct {
      gaspi_int netdev_id;
      gaspi_uint mtu;
      gaspi_uint port_check;
    } ib;
    struct {
      gaspi_uint port;
    } tcp;
  } params;
} gaspi_dev_config_t;

/// The configuration (5.1), for `gaspi_config_get` and `gaspi_config_set`. A field that is marked *ignored* has no
/// meaning here; a value that differs from the default is logged once.
typedef struct gaspi_config {
  gaspi_uint logger;                       ///< ignored: `gaspi_printf` writes to standard output
  gaspi_uint sn_port;                      ///< ignored: see BEELINE_... in docs/settings.md
  gaspi_uint net_info;                     ///< ignored
  gaspi_uint user_net;                     ///< ignored
  gaspi_int sn_persistent;                 ///< ignored
  gaspi_timeout_t sn_timeout;              ///< ignored
  gaspi_dev_config_t dev_config;           ///< ignored
  gaspi_network_t network;                 ///< ignored: see BEELINE_TRANSPORTS
  gaspi_uint queue_size_max;               ///< entries of a queue
  gaspi_uint queue_num;                    ///< queues that `gaspi_proc_init` makes
  gaspi_number_t group_max;                ///< groups beside GASPI_GROUP_ALL
  gaspi_number_t segment_max;              ///< segments of a rank
  gaspi_size_t transfer_size_max;          ///< bytes of a transfer
  gaspi_number_t notification_num;         ///< notifications of a segment
  gaspi_number_t passive_queue_size_max;   ///< passive messages in flight to a rank
  gaspi_size_t passive_transfer_size_max;  ///< bytes of a passive message
  gaspi_size_t allreduce_buf_size;         ///< bytes of a vector of `gaspi_allreduce_user`
  gaspi_number_t allreduce_elem_max;       ///< elements of a vector of `gaspi_allreduce`
  gaspi_number_t rw_list_elem_max;         ///< elements of a list
  gaspi_number_t build_infrastructure;     ///< GASPI_TOPOLOGY_...
  void* user_defined;                      ///< the program's
  gaspi_int netdev_id;                     ///< ignored, as in `dev_config`
  gaspi_uint mtu;                          ///< ignored
  gaspi_uint port_check;                   ///< ignored
} gaspi_config_t;

GASPI_END

#endif
