// The device-independent part of a backend. Kernels of equal structure are compiled once. Images are made on worker
// threads and kept in memory and on disk.
#pragma once

#include <mutex>
#include <unordered_map>

#include "codegen/backend.h"
#include "codegen/disk_cache.h"

namespace cresset::codegen {

class CachingBackend : public Backend {
 public:
  std::shared_ptr<ScheduledKernels> schedule(const std::vector<const loop::Kernel*>& kernels) final;
  Result<CompiledKernels> generate(const ScheduledKernels& scheduled) final;
  std::optional<CompiledKernels> find(const std::vector<KernelRecord>& records) final;
  std::string target_text() final;
  bool uses_disk() final;
  CodegenStats stats() const final;
  void clear_memory_cache() final;

 protected:
  // The execution plan of a kernel on the device, decided before code generation. Equal (canonical kernel text, text)
  // give equal code.
  class Plan {
   public:
    virtual ~Plan() = default;
    std::string text;         // over the kernel's canonical names
    std::string description;  // for messages
  };
  struct Traits {
    DeviceKind device;
    runtime::KernelImage::Format format;
  };
  explicit CachingBackend(Traits traits) : traits_(traits) {}

  // All these functions are called with the mutex held. Several workers call make_image() concurrently, each with its
  // own number.
  virtual void set_up() = 0;  // called first; cheap when nothing has changed
  virtual std::string target() const = 0;
  virtual bool may_use_disk() const = 0;
  virtual std::shared_ptr<const Plan> plan(const loop::Kernel& kernel) = 0;
  virtual runtime::LaunchPlan launch_plan(const loop::Kernel& kernel, const Plan& plan) = 0;
  virtual void need_workers(size_t count) = 0;
  // Fallback: no code can be made for the kernel.
  virtual Result<std::string> make_image(const loop::Kernel& kernel, const Plan& plan, const std::string& entry,
                                         size_t worker) = 0;
  virtual Result<std::shared_ptr<const CompiledKernel>> load(const runtime::KernelImage& image,
                                                             KernelRecord record) = 0;

  mutable std::mutex mutex_;  // held over a whole step: programs compiled concurrently share their kernels

 private:
  struct Job;
  class Scheduled;
  Job make_job(const loop::Kernel& kernel);
  std::optional<Fallback> make_images(std::vector<Job>& jobs);
  Result<std::shared_ptr<const CompiledKernel>> load(Job& job);
  std::shared_ptr<const CompiledKernel> find(const KernelRecord& record);
  DiskCache disk() const;

  const Traits traits_;
  std::unordered_map<std::string, std::shared_ptr<const CompiledKernel>> kernels_;  // by key
  // The same by the hash of the key. find() and files on disk use hashes.
  std::unordered_map<std::string, std::shared_ptr<const CompiledKernel>> by_hash_;
  CodegenStats stats_;
};

}  // namespace cresset::codegen
