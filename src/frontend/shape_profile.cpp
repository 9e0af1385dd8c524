#include "frontend/shape_profile.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "base/options.h"
#include "frontend/py_ref.h"
#include "sym/names.h"

namespace cresset::frontend {
namespace {

namespace fs = std::filesystem;

std::string profile_folder() {
  if (option_flag(Option::NO_DISK_CACHE)) return "";
  if (const std::string folder = option(Option::CACHE_DIR); !folder.empty()) return folder + "/profiles";
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : std::string(home) + "/.cache/cresset/profiles";
}

std::string text_of(PyObject* object, const char* attribute) {
  PyRef value = PyRef::steal(PyObject_GetAttrString(object, attribute));
  const char* text = value && PyUnicode_Check(value.get()) ? PyUnicode_AsUTF8(value.get()) : nullptr;
  PyErr_Clear();
  return text != nullptr ? text : "";
}

// A bound method's function, a module's forward, ...: the code that runs.
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

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Calls f(source, size) for each dimension of each tensor of a call.
template <class F>
void for_each_size(const ArgSpec& spec, const CallLeaves& leaves, size_t& next, F&& f) {
  if (spec.kind == ArgSpec::Kind::Float) ++next;  // a tensor of one number among the leaves
  if (spec.kind == ArgSpec::Kind::Tensor) {
    const at::Tensor& t = leaves.tensors[next++];
    for (int64_t d = 0; d < t.dim(); ++d) f(c10::str(spec.path, ".size(", d, ")"), t.size(d));
  }
  for (const ArgSpec& child : spec.children) for_each_size(child, leaves, next, f);
}

// Holds the file against other processes.
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
  if (!file_.empty()) profile_ = sym::Profile::from_text(read_file(file_));
}

void ShapeProfile::observe(const ArgSpec& args, const ArgSpec& kwargs, const CallLeaves& leaves) {
  size_t next = 0;
  const auto see = [&](const std::string& source, int64_t size) {
    if (profile_.observe(source, size)) CRESSET_LOG(Recompiles, source + " varies: it becomes dynamic");
  };
  for_each_size(args, leaves, next, see);
  for_each_size(kwargs, leaves, next, see);
}

void ShapeProfile::mark_static(const std::string& tensor, std::vector<bridge::DimMark>& marks) const {
  for (size_t d = 0; d < marks.size(); ++d) {
    if (marks[d].policy != sym::Policy::Dynamic) continue;  // the user's word comes first
    if (!profile_.wants_symbol(c10::str(tensor, ".size(", d, ")"))) marks[d].policy = sym::Policy::Static;
  }
}

void ShapeProfile::note_outcome(sym::ShapeEnv& env) {
  for (const sym::Symbol& s : env.symbols()) {
    if (s.hint && s.policy == sym::Policy::Dynamic && env.pool().is_const(env.simplify(env.pool().var(s.var))))
      profile_.note_pinned(s.source);
  }
}

void ShapeProfile::save() {
  if (file_.empty()) return;
  std::error_code error;
  fs::create_directories(fs::path(file_).parent_path(), error);
  const FileLock lock(file_);
  sym::Profile merged = sym::Profile::from_text(read_file(file_));
  merged.merge(profile_);
  if (merged == sym::Profile::from_text(read_file(file_))) return;
  const std::string fresh = file_ + "." + std::to_string(::getpid());
  {
    std::ofstream out(fresh, std::ios::binary);
    out << merged.to_text();
    if (!out) return;
  }
  fs::rename(fresh, file_, error);
}

}  // namespace cresset::frontend
