// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// UCX's functions, opened at run time: a world inside one node needs none of them.

#include <ucp/api/ucp.h>

#include <string>

namespace beeline {

/// Every function of UCX that Beeline calls.
#define BEELINE_UCX_FUNCTIONS(each)                                                                                   \
  each(ucp_get_version) each(ucp_get_version_string) each(ucp_config_read) each(ucp_config_modify)                    \
      each(ucp_config_release) each(ucp_init_version) each(ucp_cleanup) each(ucp_worker_create)                       \
          each(ucp_worker_destroy) each(ucp_worker_get_address) each(ucp_worker_release_address)                      \
              each(ucp_worker_get_efd) each(ucp_worker_arm) each(ucp_worker_progress)                                 \
                  each(ucp_worker_set_am_recv_handler) each(ucp_ep_create) each(ucp_ep_close_nbx)                     \
                      each(ucp_am_send_nbx) each(ucp_am_recv_data_nbx) each(ucp_request_check_status)                 \
                          each(ucp_request_free) each(ucp_am_data_release) each(ucs_status_string) each(ucp_mem_map)  \
                              each(ucp_mem_unmap) each(ucp_rkey_pack) each(ucp_rkey_buffer_release)                   \
                                  each(ucp_ep_rkey_unpack) each(ucp_rkey_destroy) each(ucp_put_nbx) each(ucp_get_nbx) \
                                      each(ucp_ep_flush_nbx) each(ucp_ep_query) each(ucp_context_query)

struct UcxFunctions {
#define BEELINE_UCX_MEMBER(function) decltype(&::function) function;
  BEELINE_UCX_FUNCTIONS(BEELINE_UCX_MEMBER)
#undef BEELINE_UCX_MEMBER
  std::string version;    ///< of the library that was found
  std::string unguarded;  ///< why connections are not checked (connection_guard.hpp); empty: they are checked
  unsigned minor = 0;     ///< its minor version
};

/// Opens UCX, once in a process: the libraries in the folder that BEELINE_UCX names (PyPI's libucx-cu13 has them in
/// `libucx/lib`), otherwise those that the system finds.
/// Throws unavailable, with what to install, if there is no UCX, or a version older than 1.13.
[[nodiscard]] const UcxFunctions& ucx();

}  // namespace beeline
