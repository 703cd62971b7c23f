/* test_job_refused.c - what a job file may not say, each with its place */
#include "tests/unit/job_texts.h"

/* Lines added to the minimal job, which has three. */
static const struct {
    const char *more, *part;
} refused[] = {
    {"workers: 0\n",
     "job.yaml:4:10: workers: '0' is out of range; give a whole number from 1 to 1024"},
    {"workers: 1000000\n", "'1000000' is out of range"},
    {"workers: -1\n", "'-1' is out of range"},
    {"workers: 99999999999999999999\n", "is out of range"},
    {"workers: two\n", "workers: 'two' is no whole number"},
    {"workers: 2.0\n", "'2.0' is no whole number"},
    {"workers: \"2\"\n", "'2' is no whole number"},
    {"workers: [2]\n", "workers: a list is no whole number"},
    {"workers:\n", "workers has no value"},
    {"workers: {}\n", "workers: a section is no whole number"},
    {"wrokers: 2\n", "job.yaml:4:1: wrokers is no key of a job; did you mean workers?"},
    {"learning_rate: 2\n", "did you mean optimizer.learning_rate?"},
    {"qqqqqqqqqqqq: 2\n", "known here: name workers"},
    {"qqqqqqqqqqqq: 2\n", " ..."}, /* behind a word */
    {"name: a/b\n", "has a character that names of files here may not have"},
    {"name: .hidden\n", "begins with a dot or a dash"},
    {"name: -x\n", "begins with a dot or a dash"},
    {"initial_weights: ${X}\nparallel: {mode: ${X}}\n", "put \"${...}\" into quotes"},
    {"name: \"\"\n", "is no name"},
    {"name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", "is too long"},
    {"drop_remainder: yes\n", "'yes' is neither true nor false; give true or false"},
    {"drop_remainder: 1\n", "neither true nor false"},
    {"batch_size: 65537\n", "from 1 to 65536"},
    {"epochs: 0\n", "from 1 to 1000000"},
    {"seed: -1\n", "is out of range"},
    {"seed: 9007199254740993000\n", "is out of range"},
    {"loss: softmax\n", "'softmax' is not known"},
    {"loss: mse\n", "loss: mse wants numbers as targets, and dataset kind mnist has classes"},
    {"classes: 3\n", "classes: 3, but dataset kind mnist has labels 0 to 9"},
    {"precision: bf16\n", "precision: bf16 comes later; this version has fp32"},
    {"checkpoint: {directory: ../ckpt}\n", "checkpoint.directory: '../ckpt' goes up by .., which"},
    {"checkpoint: {directory: a/../b}\n", "goes up by .., which is not taken where a job writes"},
    {"checkpoint: {directory: a/..}\n", "goes up by .."},
    {"checkpoint: {directory: \"${HOME}/x\"}\n", "has a variable in it, which is not taken"},
    {"checkpoint: {directory: ~/x}\n", "begins with ~, which is not taken where a job writes"},
    {"checkpoint: {directory: weights.safetensors}\n",
     "job.yaml:4:25: checkpoint.directory: 'weights.safetensors' is the name of a file that the "
     "run "
     "directory has itself; give a folder below"},
    {"checkpoint: {directory: ./plan.txt/}\n", "'./plan.txt/' is the name of a file"},
    {"checkpoint: {directory: .//metrics.jsonl/x}\n", "is the name of a file"},
    {"checkpoint: {directory: worker_1.log}\n", "is the name of a file"},
    {"checkpoint: {directory: scheduler.log}\n", "is the name of a file"},
    {"checkpoint: {directory: scheduler.db-wal}\n", "is the name of a file"},
    {"checkpoint: {directory: scheduler.sock}\n", "is the name of a file"},
    {"checkpoint: {directory: tls}\n", "is the name of a file"},
    {"checkpoint: {directory: run.lock}\n", "is the name of a file"},
    {"checkpoint: {directory: ./., prefix: scheduler.db}\n",
     "job.yaml:4:38: checkpoint.prefix: 'scheduler.db' in a run directory itself would be taken"},
    {"checkpoint: {directory: /c, prefix: scheduler.db}\n",
     "job.yaml:4:37: checkpoint.prefix: 'scheduler.db' in a run directory itself would be taken"},
    {"checkpoint: {directory: best-12.safetensors}\n", "is the name of a file"},
    {"evaluate: {dataset: {kind: cifar10, path: /x}}\nbest: {keep: 2}\n"
     "checkpoint: {prefix: best}\n",
     "checkpoint.prefix: with best.keep: 2 the best weights are called best-STEP"},
    {"evaluate: {dataset: {kind: cifar10, path: /x}}\nbest: {keep: 0}\n",
     "best.keep: '0' is out of range"},
    {"checkpoint: {directory: [x]}\n", "checkpoint.directory: a list is no folder"},
    {"checkpoint: {directory: \"a\\nb\"}\n", "has a control character in it"},
    {"checkpoint: {prefix: a/b}\n", "checkpoint.prefix: 'a/b' has a character that names"},
    {"checkpoint: {keep_max: 0}\n", "checkpoint.keep_max: '0' is out of range"},
    {"checkpoint: {every_steps: -1}\n", "checkpoint.every_steps: '-1' is out of range"},
    {"checkpoint: {every_step: 1}\n", "did you mean checkpoint.every_steps?"},
    {"checkpoint: 100\n", "checkpoint must be a section of keys"},
    {"workers: 2\nparallel: {mode: stand_alone}\ncheckpoint: {}\n",
     "job.yaml:6:13: checkpoint: in mode stand_alone each of the 2 workers"},
    {"workers: 2\nparallel: {mode: stand_alone}\nresume: /x\n",
     "job.yaml:6:9: resume: in mode stand_alone each of the 2 workers"},
    {"workers: 2\nparallel: {mode: stand_alone}\nrecovery: true\n",
     "job.yaml:6:11: recovery: in mode stand_alone each of the 2 workers has a training of its "
     "own, and no other one holds what a lost one had; use one worker, or data_parallel"},
    {"recovery: 1\n", "job.yaml:4:11: recovery: '1' is neither true nor false"},
    {"profile: true\n", "profile comes with a later version"},
    {"gradient_accumulation: 4\n",
     "job.yaml:4:1: gradient_accumulation is called accumulate here; give that key"},
    {"accumulate: 0\n", "accumulate: '0' is out of range; give a whole number from 1 to 1024"},
    {"accumulate: 1025\n", "accumulate: '1025' is out of range"},
    {"average: {}\n",
     "average.decay is missing (what stays of it in a step); give a number from 0"},
    {"average: 0.9\n",
     "average must be a section of keys: a moving average of the weights, which is evaluated and "
     "saved; known here: decay"},
    {"average: {decay: 1}\n", "average.decay: '1' is out of range"},
    {"accumulat: 2\n", "did you mean accumulate?"},
    {"parallel: {mode: auto_parallel}\n", "parallel.mode: auto_parallel comes later"},
    {"parallel: {mode: semi_auto_parallel}\n", "comes later"},
    {"parallel: {grad_accumulation_step: 4}\n",
     "parallel.grad_accumulation_step is called accumulate here; give that key"},
    {"parallel: 3\n", "parallel must be a section"},
    {"parallel:\n", "job.yaml:4:10: parallel has no value; give {} for the defaults, or its keys "
                    "(how the workers share it)"},
    {"parallel: null\n", "parallel has no value; give {} for the defaults, or its keys"},
    {"checkpoint:\n#  every_steps: 10\n",
     "checkpoint has no value; give {} for the defaults, or its keys (what a training is resumed "
     "from), or null for none"},
    {"evaluate:\n", "evaluate has no value; give its keys (loss and accuracy on other data), or "
                    "null for none"},
    {"evaluate: {dataset: }\n", "evaluate.dataset has no value; give its keys (what it is tested "
                                "on)"},
    {"evaluate: {dataset: {kind: mnist, path: m}, metrics: top5}\n",
     "evaluate.metrics must be a list, as [top5, per_class]"},
    {"evaluate: {dataset: {kind: mnist, path: m}, metrics: [top1]}\n",
     "job.yaml:4:55: evaluate.metrics: 'top1' is not known, did you mean top5?; legal: top5 | "
     "per_class | confusion | perplexity | mae"},
    {"evaluate: {dataset: {kind: mnist, path: m}, metrics: [top5, top5]}\n",
     "job.yaml:4:61: evaluate.metrics has top5 twice"},
    {"loss: l1\n", "loss: l1 wants numbers as targets, and dataset kind mnist has classes"},
    {"huber_delta: 2\n", "huber_delta has no meaning with loss: softmax_cross_entropy"},
    {"evaluate: {dataset: {kind: mnist, path: m}, metrics: [mae]}\n",
     "evaluate.metrics: mae is the distance to targets that are numbers, and loss: "
     "softmax_cross_entropy has classes; leave it out"},
    {"resume:\n", "resume has no value; give a path, or null for none"},
    {"initial_weights:\n", "initial_weights has no value; give a path, or {file: PATH, exclude: "
                           "[PATTERN, ...], rename: "},
    {"parallel: {mode: pipeline_parallel}\n",
     "job.yaml:4:18: parallel.mode: pipeline_parallel comes later; this version has data_parallel"},
    {"parallel: {pipeline_stages: 2}\n", "job.yaml:4:12: parallel.pipeline_stages comes with a "
                                         "later version (model parallelism); leave the key out"},
    {"pipeline_parallel: 2\n",
     "job.yaml:4:1: pipeline_parallel comes with a later version (model parallelism); leave"},
    {"tensor_parallel: 2\n", "tensor_parallel comes with a later version (model parallelism)"},
    {"model_parallel: 2\n", "model_parallel comes with a later version (model parallelism)"},
    {"graph: net.onnx\n",
     "job.yaml:4:1: graph comes with a later version (graphs of MindSpore; a "
     "model of PyTorch's exporters is network: model.onnx); leave the key out"},
    {"mixed_precision: true\n", "mixed_precision comes with a later version (bf16)"},
    {"precision: bfloat16\n", "precision: bfloat16 comes later; this version has fp32"},
    {"checkpoints: {every: 5}\n", "checkpoints is no key of a job; did you mean checkpoint?"},
    {"initial_weights: \"~/x\"\n", "write ${HOME}"},
    {"initial_weights: \"${X\"\n", "has a ${ that no name and } follow"},
    {"initial_weights: \"${}\"\n", "has a ${ that no name and } follow"},
    {"initial_weights: \"a\\nb\"\n", "has a control character in it"},
    {"initial_weights: [x]\n", "initial_weights: a list is no path"},
    {"early_stop: {patience: 2}\n", "early_stop: evaluations decide, and the job has none"},
    {"best: {}\n", "best: evaluations decide, and the job has none; give evaluate"},
    {"evaluate: {dataset: {kind: mnist, path: x}}\nearly_stop: {}\n",
     "early_stop.patience is missing"},
    {"evaluate: {dataset: {kind: mnist, path: x}}\nbest: {metric: top5}\n",
     "best.metric: top5 is not counted; add it to evaluate.metrics"},
    {"evaluate: {dataset: {kind: mnist, path: x}}\nbest: {metric: f1}\n", "'f1' is not known"},
    {"evaluate: {dataset: {kind: mnist, path: x}}\nearly_stop: {patience: 1}\nworkers: 2\n"
     "parallel: {mode: stand_alone}\n",
     "early_stop: in mode stand_alone each of the 2 workers has a training of its own"},
    {"evaluate: {every_epochs: 2}\n", "evaluate.dataset is missing"},
    {"evaluate: {dataset: {kind: mnist}}\n", "evaluate.dataset.path is missing"},
    {"evaluate: {dataset: {kind: cifar10, path: x}}\n", "does not fit training on kind mnist"},
    {"evaluate: {dataset: {kind: mnist, path: x, shuffle: true}}\n", "is no key of a job"},
    {"evaluate: {dataset: {kind: mnist, path: x}}\ntransforms: [{random_crop: {size: 24}}]\n",
     "images are 28x28, but training has 24x24"},
    {"transforms: {resize: {size: [1, 1]}}\n", "transforms must be a list"},
    {"transforms: [resize]\n", "transforms[0] must have exactly one name"},
    {"transforms: [{resize: {size: [1, 1]}, rescale: {scale: 1}}]\n", "exactly one name"},
    {"transforms: [{mixup: {}}, {rescale: {scale: 2}}]\n",
     "mixup: samples are mixed when they are ready; put it last"},
    {"transforms: [{mixup: {alpha: 0}}]\n", "transforms[0].mixup.alpha: '0' is out of range"},
    {"transforms: [{mixup: {alpha: 101}}]\n", "above 0 and at most 100"},
    {"transforms: [{resze: {size: [1, 1]}}]\n", "resze is no transform; did you mean resize?"},
    {"transforms: [{resize: 3}]\n", "transforms[0].resize must hold keys"},
    {"transforms: [{resize: }]\n", "transforms[0].resize.size is missing"},
    {"transforms: [{resize: {size: 32}}]\n", "'32' does not fit; give [height, width], each"},
    {"transforms: [{resize: {size: [0, 5]}}]\n", "'0' is out of range"},
    {"transforms: [{resize: {size: [5, 5000]}}]\n", "'5000' is out of range"},
    {"transforms: [{resize: {size: [5, 5], interpolation: cubic}}]\n", "'cubic' is not known"},
    {"transforms: [{resize: {size: [5, 5], iterpolation: nearest}}]\n",
     "did you mean interpolation?"},
    {"transforms: [{normalize: {mean: [1, 2], std: [1]}}]\n",
     "transforms[0].normalize.std has 1 numbers where the list before it has 2"},
    {"transforms: [{normalize: {mean: [0], std: [0]}}]\n", "'0' is out of range"},
    {"transforms: [{normalize: {mean: [.inf], std: [1]}}]\n", "'.inf' is not finite"},
    {"transforms: [{normalize: {mean: [], std: []}}]\n", "is no list of numbers"},
    {"transforms: [{normalize: {mean: [1, 2, 3], std: [1, 2, 3]}}]\n",
     "normalize: mean and std have 3 numbers, the images have 1 channels"},
    {"transforms: [{random_crop: {size: 99, padding: 4}}]\n",
     "random_crop: size [99, 99] is larger than the padded image, 36x36"},
    {"transforms: [{random_crop: {size: 9, padding: [1, 2, 3]}}]\n", "a list does not fit"},
    {"transforms: [{random_crop: {size: 9, padding: 85}}]\n", "more than three times the image"},
    {"transforms: [{random_horizontal_flip: {prob: 1.5}}]\n", "from 0 to 1"},
    {"a: &x 1\n", "job.yaml:4:4: anchors (&x)"},
    {"a: *x\n", "job.yaml:4:4: aliases (*x)"},
    {"a: !!int 3\n", "tags (tag:yaml.org,2002:int)"},
    {"? [a]\n: 3\n", "a key must be a word"},
    {"network: mnist\n", "job.yaml:4:1: network stands twice: first on line 1"},
    {"---\nnetwork: mnist\n", "a second document begins"},
    {"\tworkers: 2\n", "job.yaml:4:1: a tab cannot indent YAML"},
    {"name: \"\\0\"\n", "a NUL byte"},
    {"name: [unclosed\n", "no valid YAML"},
    {"workers 2\n", "job.yaml:4:1: no valid YAML: while scanning a simple key, could not find"},
    {"name: a\x01z\n", "a control character (0x01)"},
    {"name: \xff\xfe\n", "not UTF-8"},
    {"a: "
     "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
     "]]]]]]]]\n",
     "nested deeper than 48 levels"},
};

START_TEST(what_is_wrong_is_refused_with_its_place)
{
    struct job job;
    ck_ms_fails(parse_more(refused[_i].more, &job, err), MS_E_INVALID, refused[_i].part);
    ck_ms_fails(parse_more(refused[_i].more, &job, err), MS_E_INVALID, "job.yaml:");
}
END_TEST

/* Schedules of a job of 4 epochs and at most 50 steps with a rate of 0.1. */
static const struct {
    const char *optimizer, *part;
} refused_optimizers[] = {
    {"weight_decay: -1", "optimizer.weight_decay: '-1' is out of range; give a number from 0 to"},
    {"clip_norm: 1, clip_value: 1",
     "optimizer.clip_value has no meaning with optimizer.clip_norm: gradients are clipped in one"},
    {"clip_norm: -1", "optimizer.clip_norm: '-1' is out of range; give a number from 0 to 100000"},
    {"alpha: 0.9", "optimizer.alpha has no meaning with optimizer.kind: momentum; leave it out"},
    {"momentum: 0.9, kind: sgd", "optimizer.momentum has no meaning with optimizer.kind: sgd"},
    {"epsilon: 1, kind: sgd", "optimizer.epsilon has no meaning with optimizer.kind: sgd"},
    {"nesterov: true, kind: sgd", "optimizer.nesterov has no meaning with optimizer.kind: sgd"},
    {"nesterov: true, momentum: 0",
     "job.yaml:6:59: optimizer.nesterov: true wants a momentum above 0; give optimizer.momentum"},
    {"schedule: cosine", "optimizer.schedule must be a section of keys: how the learning rate"},
    {"schedule: ", "optimizer.schedule has no value; give its keys"},
    {"schedule: {}", "optimizer.schedule.kind is missing"},
    {"schedule: {kind: cosin}", "optimizer.schedule.kind: 'cosin' is not known"},
    {"schedule: {kind: cosine, gama: 1}", "did you mean optimizer.schedule.gamma?"},
    {"schedule: {kind: cosine, gamma: 1}",
     "optimizer.schedule.gamma has no meaning with optimizer.schedule.kind: cosine; leave it out"},
    {"schedule: {kind: constant, length: 5}", "optimizer.schedule.length has no meaning with"},
    {"schedule: {kind: constant, by: day}", "optimizer.schedule.by: 'day' is not known"},
    {"schedule: {kind: step, by: step}", "optimizer.schedule.step_size is missing"},
    {"schedule: {kind: step, by: step, step_size: 0}", "step_size: '0' is out of range"},
    {"schedule: {kind: step, step_size: 3}",
     "optimizer.schedule.by is missing (what the schedule counts); give step | epoch"},
    {"schedule: {kind: cosine, warmup: 3}",
     "optimizer.schedule.by is missing (what warmup and length count); give step | epoch"},
    {"schedule: {kind: cosine, length: 3}", "optimizer.schedule.by is missing"},
    {"schedule: {kind: exponential, by: step}", "optimizer.schedule.gamma is missing"},
    {"schedule: {kind: exponential, by: step, gamma: 1.5}", "'1.5' is out of range; give a number"},
    {"schedule: {kind: multi_step, by: step}", "optimizer.schedule.milestones is missing"},
    {"schedule: {kind: multi_step, by: step, milestones: 3}",
     "optimizer.schedule.milestones must be a list of whole numbers"},
    {"schedule: {kind: multi_step, by: step, milestones: []}", "must be a list of whole numbers"},
    {"schedule: {kind: multi_step, by: step, milestones: [3, x]}", "'x' is no whole number"},
    {"schedule: {kind: multi_step, by: step, milestones: [0]}",
     "'0' is out of range; give a list of whole numbers that rise, each from 1 to 1000000000000"},
    {"schedule: {kind: multi_step, by: step, milestones: [9, 9]}",
     "optimizer.schedule.milestones: 9 follows 9, and each must be larger"},
    {"schedule: {kind: multi_step, by: step, milestones: [5, 9], warmup: 5}",
     "optimizer.schedule.milestones: 5 lies within the warm-up, and they count from the job's "
     "beginning; give 6 or more"},
    {"schedule: {kind: constant, by: step, warmup: 51}",
     "optimizer.schedule.warmup: 51 steps, and the job has 50; give 0 to 50"},
    {"schedule: {kind: constant, by: epoch, warmup: 5}",
     "optimizer.schedule.warmup: 5 epochs, and the job has 4; give 0 to 4"},
    {"schedule: {kind: constant, by: epoch, warmup: -1}", "warmup: '-1' is out of range"},
    {"schedule: {kind: constant, warmup_from: 1.1}", "warmup_from: '1.1' is out of range"},
    {"schedule: {kind: cosine, by: step, warmup: 9, length: 9}",
     "optimizer.schedule.length: 9, and the warm-up is a part of it; give 10 or more, or less"},
    {"schedule: {kind: cosine, min_learning_rate: 0.2}",
     "optimizer.schedule.min_learning_rate: 0.2 is more than optimizer.learning_rate; give 0 to "
     "0.1"},
    {"schedule: {kind: polynomial, power: 0}", "power: '0' is out of range"},
    {"schedule: {kind: one_cycle}", "optimizer.schedule.max_learning_rate is missing"},
    {"schedule: {kind: one_cycle, max_learning_rate: 0.05}",
     "max_learning_rate: 0.05 is less than optimizer.learning_rate, from which it rises; give 0.1"},
    {"schedule: {kind: one_cycle, max_learning_rate: 1, pct_start: 2}", "pct_start: '2' is out of"},
};

START_TEST(what_is_wrong_with_an_optimizer_is_refused_with_its_place)
{
    struct job job;
    char text[1024];
    const char *kind =
        strstr(refused_optimizers[_i].optimizer, "kind: sgd") == NULL ? "kind: momentum, " : "";
    snprintf(text, sizeof(text),
             "network: mnist\ndataset: {kind: mnist, path: /data/mnist}\nepochs: 4\nsteps: 50\n"
             "loss: softmax_cross_entropy\noptimizer: {%slearning_rate: 0.1, %s}\n",
             kind, refused_optimizers[_i].optimizer);
    ck_ms_fails(parse(text, &job, err), MS_E_INVALID, refused_optimizers[_i].part);
    ck_ms_fails(parse(text, &job, err), MS_E_INVALID, "job.yaml:6:");
}
END_TEST

START_TEST(sixty_five_milestones_are_one_too_many)
{
    struct job job;
    char set[1024] = "optimizer.schedule={kind: multi_step, by: step, milestones: [1";
    for (int i = 2; i <= MS_MILESTONES_MAX; i++) {
        snprintf(set + strlen(set), sizeof(set) - strlen(set), ", %d", i);
    }
    const size_t n = strlen(set);
    snprintf(set + n, sizeof(set) - n, "]}");
    ck_ms_ok(parse_set(MINIMAL, set, &job, err));
    ck_assert_int_eq(job.optimizer.schedule.milestones[63], 64);
    check_round_trip(&job);
    snprintf(set + n, sizeof(set) - n, ", 65]}");
    ck_ms_fails(parse_set(MINIMAL, set, &job, err), MS_E_INVALID,
                "optimizer.schedule.milestones has 65 entries; at most 64");
}
END_TEST

START_TEST(no_bytes_at_all_are_an_empty_file)
{
    struct job job; /* an empty field of a message has no place either */
    ck_ms_fails(job_parse(NULL, 0, "the job", NULL, NULL, 0, 0, &job, err), MS_E_INVALID,
                "the file is empty");
}
END_TEST

static const struct {
    const char *text, *part;
} refused_whole[] = {
    {"", "the file is empty"},
    {"# a comment\n", "the file is empty"},
    {"---\n...\n", "the file is empty"},
    {"mnist\n", "this is a single value"},
    {"- mnist\n", "this is a list of values"},
    {"dataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1}\n",
     "job.yaml:1:1: network is missing"},
    {"network: mnist\noptimizer: {kind: sgd, learning_rate: 1}\n", "dataset is missing"},
    {"network: mnist\ndataset: {}\noptimizer: {kind: sgd, learning_rate: 1}\n",
     "job.yaml:2:10: dataset.kind is missing"},
    {"network: mnist\ndataset: {kind: mnist}\noptimizer: {kind: sgd, learning_rate: 1}\n",
     "dataset.path is missing"},
    {"network: linear\ndataset: {kind: nonlinear, path: x}\noptimizer: {kind: sgd, learning_rate: "
     "1}\n",
     "dataset.path has no meaning with dataset.kind: nonlinear"},
    {"network: linear\ndataset: {kind: nonlinear, usage: all}\noptimizer: {kind: sgd, "
     "learning_rate: 1}\n",
     "all has no meaning with kind: nonlinear"},
    {"network: linear\ndataset: {kind: nonlinear}\nloss: softmax_cross_entropy\noptimizer: {kind: "
     "sgd, learning_rate: 1}\n",
     "job.yaml:3:7: loss: softmax_cross_entropy wants classes"},
    {"network: linear\nclasses: 2\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, "
     "learning_rate: 1}\n",
     "has no classes; leave it out"},
    {"network: linear\ndataset: {kind: nonlinear}\ntransforms: [{resize: {size: [2, 2]}}]\n"
     "optimizer: {kind: sgd, learning_rate: 1}\n",
     "has no images; leave them out"},
    {"network: lenet5\ndataset: {kind: image_folder, path: /x, shape: [3, 1, 1], classes: 2, size: "
     "1}\ntransforms: [{random_horizontal_flip: {prob: 0.5}}]\n"
     "optimizer: {kind: sgd, learning_rate: 1}\n",
     "job.yaml:2:77: dataset.size: images of 1x1 pixel leave the transforms nothing to do; give "
     "the "
     "height and width that the network is made for, as [224, 224]"},
    {"network: lenet5\ndataset: {kind: csv, path: /x, split: 0.2}\n"
     "optimizer: {kind: sgd, learning_rate: 1}\n",
     "job.yaml:2:39: dataset.split must be a section of keys: data that have no parts become two, "
     "as {test: 0.2}; known here: test seed"},
    {"network: lenet5\ndataset: {kind: csv, path: ~/c.npz}\n"
     "optimizer: {kind: sgd, learning_rate: 1}\n",
     "dataset.path: '~/c.npz' begins with ~, which nobody expands (write ${HOME}); give a path"},
    {"network: sd.pt\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1}\n",
     "job.yaml:1:10: network: a PyTorch file holds weights, and no network that can be read; give "
     "an ONNX model of the module, or a list of layers, and the weights as initial_weights: "
     "safetensors.torch.save_file(module.state_dict(), \"net.safetensors\")"},
    {"network: [flaten2x]\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1}\n",
     " ..."},
    {"network: net.onnx\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1}\n",
     "job.yaml:1:10: network: /base/net.onnx cannot be opened"},
    {"network: resnet\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1}\n",
     "'resnet' is no network that has a name, did you mean resnet50?; give a list of layers, a "
     "file"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd}\n",
     "job.yaml:3:12: optimizer.learning_rate is missing"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: -0.1}\n",
     "optimizer.learning_rate: '-0.1' is out of range; give a number from 0 to 1000"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: .nan}\n",
     "'.nan' is not finite"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: NaN}\n",
     "'NaN' is not finite"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1e999}\n",
     "'1e999' is out of range"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 0x1p3}\n",
     "'0x1p3' is no number"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1, "
     "momentum: 0.9}\n",
     "optimizer.momentum has no meaning with optimizer.kind: sgd"},
    {"network: linear\ndataset: {kind: nonlinear}\noptimizer: {kind: sgd, learning_rate: 1, beta1: "
     "0.9}\n",
     "optimizer.beta1 has no meaning"},
};

START_TEST(a_file_that_is_no_job_is_refused)
{
    struct job job;
    ck_ms_fails(parse(refused_whole[_i].text, &job, err), MS_E_INVALID, refused_whole[_i].part);
}
END_TEST

START_TEST(a_failure_writes_nothing)
{
    struct job job;
    struct job before;
    memset(&job, 0x5A, sizeof(job));
    memcpy(&before, &job, sizeof(job));

    ck_ms_fails(parse_more("loss: mse\n", &job, err), MS_E_INVALID, "loss");

    ck_assert_mem_eq(&job, &before, sizeof(job));
}
END_TEST

START_TEST(a_bomb_of_many_values_is_refused)
{
    size_t size = 200000;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    memset(text, ',', size);
    for (size_t i = 0; i < size; i += 2) {
        text[i] = '1';
    }
    memcpy(text, "a: [", 4);
    struct job job;

    ck_ms_fails(job_parse(text, size, "job.yaml", NULL, NULL, 0, 0, &job, err), MS_E_INVALID,
                "more than 16384 values");
    free(text);
}
END_TEST

START_TEST(a_file_that_is_too_long_is_refused)
{
    size_t size = MS_JOB_FILE_MAX + 1;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    memset(text, '#', size);
    struct job job;

    ck_ms_fails(job_parse(text, size, "job.yaml", NULL, NULL, 0, 0, &job, err), MS_E_INVALID,
                "a job has at most 1048576");
    free(text);
}
END_TEST

START_TEST(seventeen_transforms_are_one_too_many)
{
    char text[1024] = "transforms=[{rescale: {scale: 1}}";
    for (int i = 0; i < MS_TRANSFORMS_MAX; i++) {
        strncat(text, ", {rescale: {scale: 1}}", sizeof(text) - strlen(text) - 1);
    }
    strncat(text, "]", sizeof(text) - strlen(text) - 1);
    struct job job;

    ck_ms_fails(parse_set(MINIMAL, text, &job, err), MS_E_INVALID, "17 entries; at most 16");
}
END_TEST

START_TEST(a_path_without_a_folder_must_be_absolute)
{
    static const char text[] = "network: mnist\ndataset: {kind: mnist, path: mnist}\n"
                               "optimizer: {kind: sgd, learning_rate: 1}\n";
    struct job job;
    ck_ms_fails(job_parse(text, strlen(text), "submit", NULL, NULL, 0, 0, &job, err), MS_E_INVALID,
                "is relative");
}
END_TEST

START_TEST(a_path_that_is_too_long_is_refused)
{
    char text[2048];
    char path[MS_PATH_MAX + 2];
    memset(path, 'a', sizeof(path));
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    snprintf(text, sizeof(text), "dataset.path=%s", path);
    struct job job;

    ck_ms_fails(parse_set(MINIMAL, text, &job, err), MS_E_INVALID, "is too long a path");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_refused");
    TCase *tc = tcase_create("job_refused");
    tcase_add_loop_test(tc, what_is_wrong_with_an_optimizer_is_refused_with_its_place, 0,
                        (int)MS_ARRAY_SIZE(refused_optimizers));
    tcase_add_test(tc, sixty_five_milestones_are_one_too_many);
    tcase_add_test(tc, no_bytes_at_all_are_an_empty_file);
    tcase_add_loop_test(tc, what_is_wrong_is_refused_with_its_place, 0,
                        (int)MS_ARRAY_SIZE(refused));
    tcase_add_loop_test(tc, a_file_that_is_no_job_is_refused, 0, (int)MS_ARRAY_SIZE(refused_whole));
    tcase_add_test(tc, a_failure_writes_nothing);
    tcase_add_test(tc, a_bomb_of_many_values_is_refused);
    tcase_add_test(tc, a_file_that_is_too_long_is_refused);
    tcase_add_test(tc, seventeen_transforms_are_one_too_many);
    tcase_add_test(tc, a_path_without_a_folder_must_be_absolute);
    tcase_add_test(tc, a_path_that_is_too_long_is_refused);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
