#include "codegen/caching_backend.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <unordered_set>

#include "base/log.h"
#include "loop/canonical.h"

namespace cresset::codegen {
namespace {

class Stopwatch {
 public:
  explicit Stopwatch(double& milliseconds) : milliseconds_(milliseconds) {}
  ~Stopwatch() {
    milliseconds_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double& milliseconds_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::string entry_of(const std::string& hash) { return "cresset_" + hash; }

// Calls work(i, worker) for each i in [0, count) on several threads, and rethrows the first exception.
template <class Work>
void on_workers(size_t workers, size_t count, const Work& work) {
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> failures(workers);
  const auto run = [&](size_t worker) {
    try {
      for (size_t i = next++; i < count; i = next++) work(i, worker);
    } catch (...) {
      failures[worker] = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  for (size_t i = 1; i < workers; ++i) pool.emplace_back(run, i);
  run(0);
  for (std::thread& thread : pool) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

// A kernel on its way to code.
struct CachingBackend::Job {
  const loop::Kernel* kernel = nullptr;
  std::shared_ptr<const Plan> plan;
  std::string key;   // canonical text, plan, target: determines the code
  std::string hash;  // of the key; names the function and the file
  std::optional<std::string> image = std::nullopt;
  bool from_disk = false;
};

class CachingBackend::Scheduled final : public ScheduledKernels {
 public:
  size_t distinct() const override { return jobs.size(); }
  std::vector<std::string> keys;  // of all kernels, in order
  std::vector<Job> jobs;          // of the distinct kernels
};

DiskCache CachingBackend::disk() const {
  return DiskCache(may_use_disk() ? default_cache_folder() : "", traits_.format);
}

CachingBackend::Job CachingBackend::make_job(const loop::Kernel& kernel) {
  Job job;
  job.kernel = &kernel;
  job.plan = plan(kernel);
  job.key = fmt::format("{}\n{}\n{}\n", loop::canonical_text(kernel), job.plan->text, target());
  job.hash = content_hash(job.key);
  return job;
}

std::shared_ptr<ScheduledKernels> CachingBackend::schedule(const std::vector<const loop::Kernel*>& kernels) {
  std::lock_guard lock(mutex_);
  const Stopwatch watch(stats_.milliseconds);
  set_up();
  stats_.kernels_requested += static_cast<int64_t>(kernels.size());
  auto out = std::make_shared<Scheduled>();
  std::unordered_set<std::string> seen;
  std::unordered_map<const loop::Kernel*, size_t> first;  // position of the first occurrence
  for (const loop::Kernel* kernel : kernels) {
    if (const auto [it, fresh] = first.try_emplace(kernel, out->keys.size()); !fresh) {
      out->keys.push_back(std::string(out->keys[it->second]));
      continue;
    }
    Job job = make_job(*kernel);
    CRESSET_LOG(Kernels, fmt::format("{}: {}{}", entry_of(job.hash), loop::print(*kernel), job.plan->description));
    out->keys.push_back(job.key);
    if (seen.insert(job.key).second) out->jobs.push_back(std::move(job));
  }
  return out;
}

std::optional<Fallback> CachingBackend::make_images(std::vector<Job>& jobs) {
  std::vector<Job*> missing;
  for (Job& job : jobs) {
    job.image = disk().read(job.hash);
    job.from_disk = job.image.has_value();
    if (!job.from_disk) missing.push_back(&job);
  }
  if (missing.empty()) return std::nullopt;
  constexpr size_t kMostThreads = 8;  // a kernel takes milliseconds, a thread microseconds
  const size_t workers =
      std::min({kMostThreads, std::max<size_t>(1, std::thread::hardware_concurrency()), missing.size()});
  need_workers(workers);
  std::vector<std::optional<Fallback>> failures(missing.size());
  on_workers(workers, missing.size(), [&](size_t i, size_t worker) {
    Job& job = *missing[i];
    Result<std::string> made = make_image(*job.kernel, *job.plan, entry_of(job.hash), worker);
    if (made.ok())
      job.image = *std::move(made);
    else
      failures[i] = made.fallback();
  });
  for (const std::optional<Fallback>& failure : failures)
    if (failure) return failure;
  return std::nullopt;
}

Result<std::shared_ptr<const CompiledKernel>> CachingBackend::load(Job& job) {
  const KernelRecord record{traits_.device, job.hash, launch_plan(*job.kernel, *job.plan)};
  runtime::KernelImage image{traits_.format, *std::move(job.image), entry_of(job.hash)};
  Result<std::shared_ptr<const CompiledKernel>> loaded = load(image, record);
  if (!loaded.ok() && job.from_disk) {  // compiled where other library functions existed
    job.from_disk = false;
    need_workers(1);
    CRESSET_TRY(image.bytes, make_image(*job.kernel, *job.plan, image.entry, 0));
    loaded = load(image, record);
  }
  if (!loaded.ok()) return loaded;
  if (!job.from_disk) disk().write(job.hash, image.bytes);
  ++(job.from_disk ? stats_.disk_hits : stats_.kernels_compiled);
  return loaded;
}

Result<CompiledKernels> CachingBackend::generate(const ScheduledKernels& given) {
  const auto& scheduled = static_cast<const Scheduled&>(given);
  std::lock_guard lock(mutex_);
  const Stopwatch watch(stats_.milliseconds);
  set_up();
  std::vector<Job> missing;
  for (const Job& job : scheduled.jobs) {
    if (const auto found = by_hash_.find(job.hash); found != by_hash_.end()) kernels_.emplace(job.key, found->second);
    if (kernels_.count(job.key) == 0) missing.push_back(job);
  }
  stats_.memory_hits += static_cast<int64_t>(scheduled.keys.size() - missing.size());
  if (std::optional<Fallback> failure = make_images(missing)) return *std::move(failure);
  for (Job& job : missing) {
    CRESSET_TRY(std::shared_ptr<const CompiledKernel> compiled, load(job));
    by_hash_.emplace(job.hash, compiled);
    kernels_.emplace(job.key, std::move(compiled));
  }
  CompiledKernels out;
  for (const std::string& key : scheduled.keys) out.push_back(kernels_.at(key));
  return out;
}

std::shared_ptr<const CompiledKernel> CachingBackend::find(const KernelRecord& record) {
  if (const auto known = by_hash_.find(record.hash); known != by_hash_.end())
    return ++stats_.memory_hits, known->second;
  std::optional<std::string> image = disk().read(record.hash);
  if (!image) return nullptr;
  const auto loaded = load({traits_.format, *std::move(image), entry_of(record.hash)}, record);
  if (!loaded.ok()) return nullptr;
  ++stats_.disk_hits;
  return by_hash_[record.hash] = *loaded;
}

std::optional<CompiledKernels> CachingBackend::find(const std::vector<KernelRecord>& records) {
  std::lock_guard lock(mutex_);
  set_up();
  CompiledKernels out;
  for (const KernelRecord& record : records) {
    out.push_back(find(record));
    if (out.back() == nullptr) return std::nullopt;
  }
  return out;
}

std::string CachingBackend::target_text() {
  std::lock_guard lock(mutex_);
  set_up();
  return target();
}

bool CachingBackend::uses_disk() {
  std::lock_guard lock(mutex_);
  return may_use_disk() && !default_cache_folder().empty();
}

CodegenStats CachingBackend::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void CachingBackend::clear_memory_cache() {
  std::lock_guard lock(mutex_);
  kernels_.clear();
  by_hash_.clear();
}

}  // namespace cresset::codegen
