// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

#include <exception>

#include "beeline/core/error.hpp"
#include "bindings.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

/// Raises the class of `beeline.errors` that belongs to the error's code.
void raise(const Error& error) {
  const nb::object rank = error.rank() < 0 ? nb::none() : nb::cast(error.rank());
  const nb::object type = nb::module_::import_("beeline.errors").attr("class_of")(name(error.code()));
  std::string text = error.what();
  if (error.code() == Status::no_resource && text.find("BEELINE_HEAP_BYTES") != std::string::npos)
    text += "; objects that are not needed any more give their memory back by .free()";
  // A text may contain the name of a file, which need not be UTF-8: then as in os.fsdecode.
  const auto message =
      nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
  PyErr_SetObject(type.ptr(), type(message, rank).ptr());
}

void translate(const std::exception_ptr& thrown, void* /*unused*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    set_python_error(error);
  }
}

}  // namespace

void set_python_error(const Error& error) {
  // First runs the handler of a signal (as Ctrl-C) that came while the call blocked, before any other code here.
  if (PyErr_CheckSignals() != 0) return;
  try {
    raise(error);
  } catch (nb::python_error& interrupt) {  // raised by a handler of a signal that came while the call blocked
    interrupt.restore();
  }
}

void bind_errors(nb::module_& /*module*/) { nb::register_exception_translator(translate); }

}  // namespace beeline::python
