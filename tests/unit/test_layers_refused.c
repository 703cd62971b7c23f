/* test_layers_refused.c - what is wrong with a list of layers, and where */
#include "tests/unit/layers_case.h"

/* ---- refusals ---- */

static const struct {
    const char *text, *words;
} wrong[] = {
    {"- conv3d: {out: 4}\n", "net.yaml:1:3: layers[0]: conv3d is no layer; did you mean conv2d?; "
                             "known: conv2d conv_transpose2d dense embedding"},
    {"- relu\n- batchnorm\n", "net.yaml:2:3: layers[1]: batchnorm is no layer; did you mean "
                              "batch_norm?"},
    {"- relu: {slope: 1}\n", "net.yaml:1:10: layers[0].relu.slope is no key of relu; known here: "},
    {"- relu6: {max: 8}\n", "net.yaml:1:11: layers[0].relu6.max is no key of relu6"},
    {"- leaky_relu: {alpha: 0.1}\n", "layers[0].leaky_relu.alpha is no key of leaky_relu; "},
    {"- leaky_relu: {slope: steep}\n", "layers[0].leaky_relu.slope: 'steep' is no number; give"},
    {"- leaky_relu: {slope: .nan}\n", "layers[0].leaky_relu.slope: '.nan' is not finite; give"},
    {"- elu: {alpha: 2e6}\n", "layers[0].elu.alpha: '2e6' is out of range; give a number from "},
    {"- gelu: {approximate: erf}\n",
     "layers[0].gelu.approximate: 'erf' is not known; legal: none | tanh"},
    {"- layer_norm: {over: pixels}\n",
     "layers[0].layer_norm.over: 'pixels' is not known; legal: sample | channels"},
    {"- layer_norm: {epsilon: 0}\n", "layers[0].layer_norm.epsilon: '0' is out of range"},
    {"- layer_norm: {gamma: none}\n", "net.yaml:1:3: layer layer_norm1 (layer_norm): there is no "
                                      "beta without a gamma; write beta: none, too"},
    {"- group_norm\n", "layers[0].group_norm.groups is missing (of channels, each by itself)"},
    {"- group_norm: {groups: 2}\n", "net.yaml:1:3: layer group_norm1 (group_norm): 3 channels are "
                                    "no multiple of 2 groups"},
    {"- flatten\n- instance_norm\n",
     "net.yaml:2:3: layer instance_norm1 (instance_norm): it reads images (n, channels, height, "
     "width), and gets (8, 360)"},
    {"- conv_transpose2d: {out: 4, kernel: 2, padding: same}\n",
     "layer conv_transpose2d1 (conv_transpose2d): padding: same is not for a transposed "},
    {"- conv_transpose2d: {out: 4, kernel: 2, output_padding: 1}\n",
     "conv_transpose2d: output padding must be at least 0 and less than the stride: window 2x2"},
    {"- conv_transpose2d: {out: 4, kernel: 2, groups: 2}\n",
     "2 groups of 3 channels that make 4: both must be multiples of it"},
    {"- flatten\n- conv_transpose2d: {out: 4, kernel: 2}\n", "it reads images (n, channels, "},
    {"- flatten\n- tokens\n", "net.yaml:2:3: layer tokens: it reads images (n, channels, height, "},
    {"- embedding: {words: 4, size: 8}\n", "net.yaml:1:3: layer embedding1 (embedding): embedding: "
                                           "the data must be rows of tokens (n, tokens)"},
    {"- embedding: {size: 8}\n",
     "layers[0].embedding.words is missing (that there are: tokens are"},
    {"- embedding: {words: 4, size: 0}\n", "layers[0].embedding.size: '0' is out of range"},
    {"- attention: {heads: 2}\n", "net.yaml:1:3: layer attention1 (attention): it reads sequences "
                                  "(n, tokens, channels), and gets (8, 3, 12, 10)"},
    {"- positional_embedding\n", "it reads sequences (n, tokens, channels), and gets (8, 3, 12"},
    {"- tokens\n- token: {at: 120}\n- dense: {out: classes}\n",
     "layer token: token 120 of 120: they are counted from 0"},
    {"- class_token\n", "it reads sequences (n, tokens, channels), and gets (8, 3, 12"},
    {"- upsample: {factor: 1024}\n- upsample: {factor: 1024}\n",
     "layer upsample: upsample: the result has more than 2^40 elements"},
    {"- upsample: {factor: 2, align_corners: true}\n",
     "layers[0].upsample: align_corners is of `mode: linear`"},
    {"- flatten\n- pad: {left: 1}\n", "it reads images (n, channels, height, width)"},
    {"- slice: {first: 2, size: 2}\n", "channels 2 to 3 of 3 are not there"},
    {"- slice: {first: 3, size: 1}\n", "channels 3 to 3 of 3 are not there"},
    {"- channel_shuffle: {groups: 2}\n", "3 channels are no multiple of 2 groups"},
    {"- tokens\n- dot_product_attention: {heads: 2}\n", "1 channels are no multiple of 2 heads"},
    {"- attention: {heads: 2, parameters: {out_proj: p}}\n", "layers[0].attention.parameters"},
    {"- softmax: {axis: 1}\n", "layers[0].softmax.axis is no key of softmax"},
    {"- flatten\n- dense: {out: 1}\n- softmax\n", "net.yaml:3:3: layer softmax: softmax: "
                                                  "the softmax of one value is 1, whatever it is"},
    {"- flatten\n- group_norm: {groups: 360}\n", "a group has one value, of which normalisation"},
    {"- flatten\n- dense: {out: 1}\n- layer_norm\n", "a sample has one value, of which"},
    {"- conv2d: {out: 1, kernel: 3}\n- layer_norm: {over: channels}\n",
     "a pixel or token has one value"},
    {"- dense: {outs: 4}\n", "layers[0].dense.outs is no key of dense; did you mean out?"},
    {"- dense: {}\n", "layers[0].dense.out is missing (values that it makes of a row, or of each "
                      "token); give a "
                      "whole number from 1 to 1048576, or the word classes"},
    {"- dense: {out: many}\n", "layers[0].dense.out: 'many' is no whole number; give a whole"},
    {"- dense: {out: 0}\n", "layers[0].dense.out: '0' is out of range"},
    {"- conv2d: {out: 4}\n", "layers[0].conv2d.kernel is missing"},
    {"- conv2d: {out: 4, kernel: [3, 3, 3]}\n", "layers[0].conv2d.kernel: a list does not fit"},
    {"- conv2d: {out: 4, kernel: 3, padding: full}\n", "layers[0].conv2d.padding: 'full' is"},
    {"- conv2d: {out: 4, kernel: 3, weight: {normal: -1}}\n",
     "has a negative width; give zeros | "},
    {"- conv2d: {out: 4, kernel: 3, weight: {gauss: 1}}\n",
     "is no way to begin; give zeros | ones"},
    {"- conv2d: {out: 4, kernel: 3, weight: normal}\n", "is no way to begin"},
    {"- conv2d: {out: 4, kernel: 3, weight: none}\n", "is no way to begin; give zeros"},
    {"- conv2d: {out: 4, kernel: 3, bias: false}\n", "is no way to begin; give none | zeros"},
    {"- conv2d: {out: 4, kernel: 3, groups: 2}\n",
     "net.yaml:1:3: layer conv2d1 (conv2d): 2 groups of 3 channels that make 4: both must be"},
    {"- conv2d: {out: 4, kernel: 3, groups: 3}\n", "3 groups of 3 channels that make 4"},
    {"- conv2d: {out: 4, kernel: 3, dilation: 0}\n", "layers[0].conv2d.dilation: "},
    {"- conv2d: {out: 4, kernel: 3, dilation: 6}\n",
     "conv2d: the kernel is larger than the padded image: window 3x3"},
    {"- repeat: {times: 2, layers: relu}\n", "layers[0].repeat.layers must be a list of layers"},
    {"- repeat: {times: 0, layers: [relu]}\n", "layers[0].repeat.times: '0' is out of range"},
    {"- {relu: {}, flatten: {}}\n", "layers[0] must have exactly one name; write each as"},
    {"- [relu]\n", "net.yaml:1:3: layers[0] must have exactly one name"},
    {"- sequential: {layers: [nothing]}\n", "sequential.layers[0]: nothing is no layer"},
    {"- conv2d: {out: 4, kernel: 13}\n",
     "net.yaml:1:3: layer conv2d1 (conv2d): conv2d: the kernel is larger than the padded image: "
     "window 13x13, stride 1x1, padding top 0 left 0 bottom 0 right 0; inputs: data (8, 3, 12, "
     "10), conv2d1.weight (4, 3, 13, 13)"},
    {"- relu\n- dense: {name: fc, out: 4}\n",
     "net.yaml:2:3: layer fc (dense): it reads rows (n, values), and gets (8, 3, 12, 10); put a "
     "flatten or a global_avg_pool before it"},
    {"- flatten\n- conv2d: {out: 4, kernel: 3}\n",
     "net.yaml:2:3: layer conv2d1 (conv2d): it reads images (n, channels, height, width), and "
     "gets (8, 360)"},
    {"- flatten\n- max_pool: {kernel: 2}\n", "net.yaml:2:3: layer max_pool: it reads images"},
    {"- residual:\n    body:\n      - conv2d: {out: 4, kernel: 3}\n",
     "net.yaml:1:3: layer residual: add: the shapes differ; inputs: conv2d1 (8, 4, 10, 8), data "
     "(8, 3, 12, 10)"},
    {"- flatten\n- dense: {out: 4}\n", "net.yaml:1:1: layers: the last one makes (8, 4), and 5 "
                                       "classes want (8, 5); write it with out: classes"},
    {"- flatten\n- dense: {out: classes}\n- softmax\n",
     "net.yaml:1:1: layers: the last one is a softmax, and loss softmax_cross_entropy takes the "
     "softmax of what it gets; leave the layer out"},
    {"layers:\n  - relu\n", "layers: the last one makes (8, 3, 12, 10), and 5 classes want (8, 5)"},
    {"- concat: {branches: [[relu], [conv2d: {out: 2, kernel: 3}]]}\n",
     "net.yaml:1:3: layer concat: concat: the shapes differ in more than their channels"},
    {"- concat: {branches: [[relu]]}\n",
     "layers[0].concat.branches: a list is no list of two to eight lists; give a list"},
    {"- concat: {branches: [[relu], relu]}\n",
     "layers[0].concat.branches[1] must be a list of layers; [] is the input itself"},
    {"- concat: {branches: [[], [nothing]]}\n",
     "layers[0].concat.branches[1][0]: nothing is no layer"},
    {"[]\n", "net.yaml:1:1: a network is a list of layers"},
    {"layers: []\n", "net.yaml:1:9: layers is empty; put a layer in it"},
    {"- residual: {body: [relu], shortcut: []}\n", "layers[0].residual.shortcut is empty"},
    {"relu\n", "net.yaml:1:1: a network is a list of layers, or a map that has one under the key"},
    {"input: {height: 32}\nlayers: [flatten, dense: {out: classes}]\n",
     "network net wants Cx32xW and gets 3x12x10; add a resize transform"},
    {"input: {hight: 32}\nlayers: [flatten]\n", "input.hight is no key of a network; did you mean "
                                                "input.height?"},
    {"summary: x\n", "layers is missing (what it is, one behind the other); give a list of layers"},
};

START_TEST(refusals_say_where_and_what)
{
    refused(wrong[_i].text, wrong[_i].words);
}
END_TEST

START_TEST(a_list_that_grows_without_end_is_refused)
{
    refused("- repeat:\n    times: 1000\n    layers:\n"
            "      - repeat: {times: 1000, layers: [relu]}\n",
            "the network has more than 10000 layers");
}
END_TEST

START_TEST(a_name_that_files_cannot_hold_is_refused)
{
    char text[512];
    static const char part[] = "a-name-of-forty-characters-and-no-more-x";
    snprintf(text, sizeof(text),
             "- sequential: {name: %s, layers: [conv2d: {name: %s, out: 4, kernel: 1}]}\n", part,
             part);
    refused(with_end(text), "net.yaml:1:");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layers_refused");
    TCase *t = tcase_create("layers_refused");
    tcase_add_loop_test(t, refusals_say_where_and_what, 0, (int)MS_ARRAY_SIZE(wrong));
    tcase_add_test(t, a_list_that_grows_without_end_is_refused);
    tcase_add_test(t, a_name_that_files_cannot_hold_is_refused);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
