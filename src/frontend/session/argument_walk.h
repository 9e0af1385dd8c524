// The arguments of a segment, and the contents of live frames: the walk over their structure, which the argument spec
// guards, makes their objects known.
#pragma once

#include <functional>

#include "frontend/session/identity_log.h"
#include "frontend/session/provenance.h"
#include "frontend/session/read_log.h"

namespace cresset::frontend {

struct ObjectLayout;

class ArgumentWalk {
 public:
  ArgumentWalk(Provenance& provenance, IdentityLog& identities, ReadLog& reads)
      : provenance_(provenance), identities_(identities), reads_(reads) {}

  // Adds an argument and the contents of its structure.
  void add_argument(const ArgSpec& spec, PyObject* object, PyObject* path);
  // Adds the contents of live frames, with their `spec`. Objects which the program may release are not kept alive.
  void add_frames(const ArgSpec& spec, PyObject* contents);

 private:
  struct Visit;  // of one argument
  void add_frame(const ArgSpec& spec, PyObject* parts, const std::function<PyRef(size_t)>& path_of);
  void make_known(const Visit& visit);
  void leave_uninspected(const Visit& visit);
  void add_contents(const Visit& visit);
  void add_parts(const Visit& visit);
  void add_child(const Visit& visit, size_t i, PyObject* key, PyObject* value);

  Provenance& provenance_;
  IdentityLog& identities_;
  ReadLog& reads_;
  bool is_reported_ = false;  // whether an iterator created the next added object for its reader
  int inside_ = 0;            // nesting depth
};

}  // namespace cresset::frontend
