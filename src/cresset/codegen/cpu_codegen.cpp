#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "base/log.h"
#include "base/options.h"
#include "codegen/code_version.h"
#include "codegen/codegen.h"
#include "codegen/disk_cache.h"
#include "codegen/emit_kernel.h"
#include "codegen/jit.h"
#include "codegen/target.h"
#include "sym/size_program.h"

namespace cresset::codegen {
namespace {

class CpuKernel : public CompiledKernel {
 public:
  CpuKernel(KernelFn fn, KernelRecord record) : fn_(fn), record_(std::move(record)) {}
  const KernelRecord* record() const override { return &record_; }
  KernelFn fn() const override { return fn_; }
  int64_t work_items(const int64_t* symbols) const override { return run(symbols)[0]; }
  int64_t item_cost(const int64_t* symbols) const override { return run(symbols)[1]; }
  int64_t scratch_bytes(const int64_t* symbols) const override { return run(symbols)[2]; }

 private:
  std::array<int64_t, 3> run(const int64_t* symbols) const {
    std::array<int64_t, 3> out{};
    record_.sizes.run(symbols, out.data());
    return out;
  }
  KernelFn fn_;
  KernelRecord record_;
};

// One kernel on its way to code.
struct Job {
  const loop::Kernel* kernel = nullptr;
  Schedule schedule;
  std::string key;   // canonical text, schedule, target: decides the code
  std::string hash;  // of the key; names the function and the file
  std::unique_ptr<llvm::MemoryBuffer> object;
  bool from_disk = false;
};

std::string function_name(const std::string& hash) { return "cresset_" + hash; }
std::string function_name(const Job& job) { return function_name(job.hash); }

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

sym::SizeProgram size_program(const Job& job) {
  std::unordered_map<VarId, uint32_t> slots;
  const std::vector<VarId> symbols = job.kernel->size_symbols();
  for (size_t i = 0; i < symbols.size(); ++i) slots[symbols[i]] = static_cast<uint32_t>(i);
  const ExprId outputs[] = {job.schedule.work_items, job.schedule.item_cost, job.schedule.scratch_bytes};
  return sym::SizeProgram::compile(job.kernel->env().pool(), outputs, slots);
}

}  // namespace

struct CpuCodegen::Scheduled {
  std::vector<std::string> keys;  // of all kernels, in order
  std::vector<Job> jobs;          // of the distinct ones
};

struct CpuCodegen::Impl {
  std::mutex mutex;  // held over a whole compile(): programs that compile at the same time share their kernels
  CpuOptions options;
  Target target;
  std::unique_ptr<Jit> jit;
  std::vector<std::unique_ptr<ObjectCompiler>> compilers;  // one a worker thread
  std::unordered_map<std::string, std::shared_ptr<const CompiledKernel>> kernels;
  // The same by the hashes of their keys: what find() goes by, as files on disk do.
  std::unordered_map<std::string, std::shared_ptr<const CompiledKernel>> by_hash;
  CodegenStats stats;

  void set_up();
  std::string target_text() const;
  std::string key_of(const Job& job) const;
  std::shared_ptr<const CompiledKernel> find(const KernelRecord& record);
  Job make_job(const loop::Kernel& kernel);
  void make_object(Job& job, ObjectCompiler& compiler) const;
  void make_objects(std::vector<Job>& jobs);
  ObjectCompiler& compiler(size_t which);
  void read_from_disk(std::vector<Job>& jobs) const;
  Result<std::shared_ptr<const CompiledKernel>> load(Job& job);
  DiskCache disk() const { return DiskCache(uses_disk() ? default_cache_folder() : ""); }
  bool uses_disk() const { return options.from_disk_cache && !option_flag(Option::NO_DISK_CACHE); }
};

void CpuCodegen::Impl::set_up() {
  if (!target.triple.empty()) return;
  const int bits = options.vector_bits != 0 ? options.vector_bits : static_cast<int>(option_int(Option::VECTOR_BITS));
  target = host_target(bits);
  compilers.clear();  // made when code is: a process that finds all its kernels on disk needs none
  if (jit == nullptr) jit = std::make_unique<Jit>(target.triple);
  jit->set_resolver(options.resolver);
}

std::string CpuCodegen::Impl::key_of(const Job& job) const {
  return fmt::format("{}\n{}\n{}\n", loop::canonical_text(*job.kernel), schedule_text(*job.kernel, job.schedule),
                     target_text());
}

std::string CpuCodegen::Impl::target_text() const {
  return fmt::format("version {} llvm {} cpu {} features {} bits {} library {}", kCodeVersion, LLVM_VERSION_STRING,
                     target.cpu, target.features, target.vector_bits, options.resolver != nullptr);
}

std::shared_ptr<const CompiledKernel> CpuCodegen::Impl::find(const KernelRecord& record) {
  if (const auto known = by_hash.find(record.hash); known != by_hash.end()) return ++stats.memory_hits, known->second;
  std::unique_ptr<llvm::MemoryBuffer> object = uses_disk() ? disk().read(record.hash) : nullptr;
  if (object == nullptr) return nullptr;
  std::string error;
  const KernelFn fn = jit->load(std::move(object), function_name(record.hash), error);
  if (fn == nullptr) return nullptr;
  ++stats.disk_hits;
  return by_hash[record.hash] = std::make_shared<CpuKernel>(fn, record);
}

Job CpuCodegen::Impl::make_job(const loop::Kernel& kernel) {
  Job job;
  job.kernel = &kernel;
  job.schedule = make_schedule(kernel, target.vector_bits);
  job.key = key_of(job);
  job.hash = content_hash(job.key);
  return job;
}

void CpuCodegen::Impl::make_object(Job& job, ObjectCompiler& compiler) const {
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  compiler.prepare(module);
  emit_kernel(*job.kernel, job.schedule,
              {options.resolver, target.vector_bits, target.has_fma, target.has_bf16, target.has_scalef},
              function_name(job), module);
  job.object = compiler.compile(module);
}

void CpuCodegen::Impl::read_from_disk(std::vector<Job>& jobs) const {
  if (!uses_disk()) return;
  for (Job& job : jobs) {
    job.object = disk().read(job.hash);
    job.from_disk = job.object != nullptr;
  }
}

// Threads ask for different ones, of those that there is room for.
ObjectCompiler& CpuCodegen::Impl::compiler(size_t which) {
  if (compilers[which] == nullptr) compilers[which] = std::make_unique<ObjectCompiler>(target);
  return *compilers[which];
}

void CpuCodegen::Impl::make_objects(std::vector<Job>& jobs) {
  std::vector<Job*> missing;
  for (Job& job : jobs)
    if (job.object == nullptr) missing.push_back(&job);
  if (missing.empty()) return;
  constexpr size_t kMostThreads = 8;  // a kernel takes milliseconds, a thread microseconds
  const size_t threads =
      std::min({kMostThreads, std::max<size_t>(1, std::thread::hardware_concurrency()), missing.size()});
  if (compilers.size() < threads) compilers.resize(threads);
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> failures(threads);
  auto work = [&](size_t which) {
    try {
      for (size_t i = next++; i < missing.size(); i = next++) make_object(*missing[i], compiler(which));
    } catch (...) {
      failures[which] = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  for (size_t i = 1; i < threads; ++i) pool.emplace_back(work, i);
  work(0);
  for (std::thread& thread : pool) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

Result<std::shared_ptr<const CompiledKernel>> CpuCodegen::Impl::load(Job& job) {
  std::string bytes;
  if (!job.from_disk && uses_disk()) bytes = job.object->getBuffer().str();
  std::string error;
  KernelFn fn = jit->load(std::move(job.object), function_name(job), error);
  if (fn == nullptr && job.from_disk) {  // made where other library functions existed
    job.from_disk = false;
    if (compilers.empty()) compilers.resize(1);
    make_object(job, compiler(0));
    fn = jit->load(std::move(job.object), function_name(job), error);
  }
  if (fn == nullptr) return Fallback{FallbackReason::CodegenFailed, "linking a kernel: " + error, ""};
  if (!bytes.empty()) disk().write(job.hash, bytes);
  ++(job.from_disk ? stats.disk_hits : stats.kernels_compiled);
  return std::shared_ptr<const CompiledKernel>(
      std::make_shared<CpuKernel>(fn, KernelRecord{job.hash, size_program(job)}));
}

CpuCodegen::CpuCodegen() : impl_(std::make_unique<Impl>()) {}
CpuCodegen::~CpuCodegen() = default;

CpuCodegen& CpuCodegen::get() {
  static CpuCodegen* codegen = new CpuCodegen();  // never destroyed: code may run until the process ends
  return *codegen;
}

void CpuCodegen::configure(CpuOptions options) {
  std::lock_guard lock(impl_->mutex);
  impl_->options = options;
  impl_->target = {};
}

Result<std::vector<std::shared_ptr<const CompiledKernel>>> CpuCodegen::compile(
    const std::vector<const loop::Kernel*>& kernels) {
  return generate(*schedule(kernels));
}

std::shared_ptr<CpuCodegen::Scheduled> CpuCodegen::schedule(const std::vector<const loop::Kernel*>& kernels) {
  std::lock_guard lock(impl_->mutex);
  const auto start = std::chrono::steady_clock::now();
  impl_->set_up();
  impl_->stats.kernels_requested += static_cast<int64_t>(kernels.size());
  auto out = std::make_shared<Scheduled>();
  std::unordered_set<std::string> seen;
  std::unordered_map<const loop::Kernel*, size_t> first;  // where each was met
  for (const loop::Kernel* kernel : kernels) {
    if (const auto [it, fresh] = first.try_emplace(kernel, out->keys.size()); !fresh) {
      out->keys.push_back(std::string(out->keys[it->second]));
      continue;
    }
    Job job = impl_->make_job(*kernel);
    CRESSET_LOG(Kernels, loop::print(*kernel) + describe(*kernel, job.schedule));
    out->keys.push_back(job.key);
    if (seen.insert(job.key).second) out->jobs.push_back(std::move(job));
  }
  impl_->stats.milliseconds += milliseconds_since(start);
  return out;
}

size_t CpuCodegen::distinct(const Scheduled& scheduled) { return scheduled.jobs.size(); }

Result<std::vector<std::shared_ptr<const CompiledKernel>>> CpuCodegen::generate(const Scheduled& scheduled) {
  std::lock_guard lock(impl_->mutex);
  const auto start = std::chrono::steady_clock::now();
  impl_->set_up();
  std::vector<Job> missing;
  for (const Job& job : scheduled.jobs) {
    if (const auto found = impl_->by_hash.find(job.hash); found != impl_->by_hash.end())
      impl_->kernels.emplace(job.key, found->second);
    if (impl_->kernels.count(job.key) == 0) missing.push_back({job.kernel, job.schedule, job.key, job.hash, {}, false});
  }
  impl_->stats.memory_hits += static_cast<int64_t>(scheduled.keys.size() - missing.size());
  impl_->read_from_disk(missing);
  impl_->make_objects(missing);
  for (Job& job : missing) {
    CRESSET_TRY(std::shared_ptr<const CompiledKernel> compiled, impl_->load(job));
    impl_->by_hash.emplace(job.hash, compiled);
    impl_->kernels.emplace(job.key, std::move(compiled));
  }
  std::vector<std::shared_ptr<const CompiledKernel>> out;
  for (const std::string& key : scheduled.keys) out.push_back(impl_->kernels.at(key));
  impl_->stats.milliseconds += milliseconds_since(start);
  return out;
}

std::optional<std::vector<std::shared_ptr<const CompiledKernel>>> CpuCodegen::find(
    const std::vector<KernelRecord>& records) {
  std::lock_guard lock(impl_->mutex);
  impl_->set_up();
  std::vector<std::shared_ptr<const CompiledKernel>> out;
  for (const KernelRecord& record : records) {
    out.push_back(impl_->find(record));
    if (out.back() == nullptr) return std::nullopt;
  }
  return out;
}

std::string CpuCodegen::target_text() {
  std::lock_guard lock(impl_->mutex);
  impl_->set_up();
  return impl_->target_text();
}

bool CpuCodegen::uses_disk() {
  std::lock_guard lock(impl_->mutex);
  return impl_->uses_disk() && !default_cache_folder().empty();
}

CodegenStats CpuCodegen::stats() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->stats;
}

void CpuCodegen::clear_memory_cache() {
  std::lock_guard lock(impl_->mutex);
  impl_->kernels.clear();
  impl_->by_hash.clear();
}

}  // namespace cresset::codegen
