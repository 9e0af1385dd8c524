#include "frontend/guards/shape_profile.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "codegen/files.h"
#include "frontend/cpython/py_ref.h"
#include "sym/names.h"

namespace cresset::frontend {
namespace {

std::string profile_folder() {
  const std::string folder = option_flag(Option::NO_DISK_CACHE) ? "" : cache_folder();
  return folder.empty() ? "" : folder + "/profiles";
}

std::string text_of(PyObject* object, const char* attribute) {
  PyRef value = PyRef::steal(PyObject_GetAttrString(object, attribute));
  const char* text = value && PyUnicode_Check(value.get()) ? PyUnicode_AsUTF8(value.get()) : nullptr;
  PyErr_Clear();
  return text != nullptr ? text : "";
}

// The code which finally runs: of a bound method's function, of a module's forward, ...
PyRef code_of(PyObject* function) {
  PyRef inner = PyRef::steal(PyObject_GetAttrString(function, "__self__"));
  PyErr_Clear();
  PyRef forward = inner ? PyRef::steal(PyObject_GetAttrString(inner.get(), "forward")) : PyRef();
  PyErr_Clear();
  PyRef target = forward ? std::move(forward) : PyRef::borrow(function);
  PyRef code = PyRef::steal(PyObject_GetAttrString(target.get(), "__code__"));
  PyErr_Clear();
  return code;
}

std::string file_for(PyObject* function) {
  const std::string folder = profile_folder();
  PyRef code = code_of(function);
  if (folder.empty() || !code) return "";
  PyRef bytes = PyRef::steal(PyObject_GetAttrString(code.get(), "co_code"));
  PyErr_Clear();
  if (!bytes || !PyBytes_Check(bytes.get())) return "";
  const std::string_view bytecode(PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())));
  const std::string identity = text_of(function, "__module__") + "\n" + text_of(code.get(), "co_qualname") + "\n";
  char name[40];
  std::snprintf(name, sizeof name, "%016llx%016llx", static_cast<unsigned long long>(sym::source_hash(identity)),
                static_cast<unsigned long long>(sym::source_hash(bytecode)));
  return folder + "/" + name + ".sizes";
}

sym::Profile read_profile(const std::string& path) { return sym::Profile::from_text(read_file(path).value_or("")); }

// Calls f(source, value) for each dimension of each tensor of a call, and for each number. Floats are passed as bits.
template <class F>
class Visit {
 public:
  Visit(const CallLeaves& leaves, F f) : leaves_(leaves), f_(std::move(f)) {}

  void operator()(const ArgSpec& spec) {
    PyObject* const object = spec.object.get();
    if (spec.kind == ArgSpec::Kind::Value && PyLong_CheckExact(object)) number(spec.path, object);
    if (spec.kind == ArgSpec::Kind::Value && PyFloat_CheckExact(object))
      f_(spec.path, std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(object)));
    if (spec.kind == ArgSpec::Kind::Int) f_(spec.path, leaves_.ints[ints_++]);
    if (spec.kind == ArgSpec::Kind::Float)
      f_(spec.path, std::bit_cast<int64_t>(leaves_.tensors[tensors_++].item<double>()));
    if (spec.kind == ArgSpec::Kind::Tensor) {
      const at::Tensor& t = leaves_.tensors[tensors_++];
      for (int64_t d = 0; d < t.dim(); ++d) f_(c10::str(spec.path, ".size(", d, ")"), t.size(d));
    }
    for (const ArgSpec& child : spec.children) (*this)(child);
  }

 private:
  void number(const std::string& path, PyObject* object) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) f_(path, value);
  }

  const CallLeaves& leaves_;
  F f_;
  size_t tensors_ = 0, ints_ = 0;
};

bool is_size(const std::string& source) { return source.ends_with(")") && source.find(".size(") != std::string::npos; }

// Locks the file against other processes.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : fd_(::open((path + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (fd_ >= 0) ::flock(fd_, LOCK_EX);
  }
  ~FileLock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  int fd_;
};

}  // namespace

ShapeProfile::ShapeProfile(PyObject* function) : file_(file_for(function)) {
  if (!file_.empty()) profile_ = read_profile(file_);
}

void ShapeProfile::observe(const ArgSpec& args, const ArgSpec& kwargs, const CallLeaves& leaves) {
  Visit see(leaves, [&](const std::string& source, int64_t value) {
    if (profile_.observe(source, value)) CRESSET_LOG(Recompiles, source + " varies: it becomes dynamic");
  });
  see(args);
  see(kwargs);
}

void ShapeProfile::add_varying(std::vector<std::string>& paths) const {
  for (const auto& [source, record] : profile_.records())
    if (!is_size(source) && profile_.wants_symbol(source) &&
        std::find(paths.begin(), paths.end(), source) == paths.end())
      paths.push_back(source);
}

void ShapeProfile::mark_static(const std::string& tensor, std::vector<bridge::DimMark>& marks) const {
  for (size_t d = 0; d < marks.size(); ++d) {
    if (marks[d].policy != sym::Policy::Dynamic) continue;  // marks of the user take precedence
    if (!profile_.wants_symbol(c10::str(tensor, ".size(", d, ")"))) marks[d].policy = sym::Policy::Static;
  }
}

void ShapeProfile::note_outcome(sym::ShapeEnv& env) {
  for (const sym::Symbol& s : env.symbols()) {
    if (s.hint && (s.policy == sym::Policy::Dynamic || s.policy == sym::Policy::Suggested) &&
        env.pool().is_const(env.simplify(env.pool().var(s.var))))
      profile_.note_specialized(s.source);
  }
}

void ShapeProfile::note_floats(const ArgSpec& args) {
  if (args.kind == ArgSpec::Kind::Float && args.object) profile_.note_specialized(args.path);
  for (const ArgSpec& child : args.children) note_floats(child);
}

void ShapeProfile::save() {
  if (file_.empty()) return;
  make_folders(parent_folder(file_));
  const FileLock lock(file_);
  const sym::Profile before = read_profile(file_);
  sym::Profile merged = before;
  merged.merge(profile_);
  if (!(merged == before)) write_file(file_, merged.to_text());
  codegen::note_used(file_);
}

}  // namespace cresset::frontend
