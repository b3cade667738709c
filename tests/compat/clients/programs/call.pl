use HTTP::Tiny;
use MIME::Base64;
my ($url, $method, $connection) = @ARGV;
my $http = HTTP::Tiny->new();
my %headers = (Authorization => 'Basic ' . encode_base64("$ENV{API_KEY}:", ''));
$http->get($url, { headers => \%headers }) if $connection eq 'kept';
my $body = $method eq 'POST' ? do { local $/; <STDIN> } : undef;
$headers{'Content-Type'} = 'application/json' if defined $body;
print $http->request($method, $url, { headers => \%headers, defined $body ? (content => $body) : () })->{status};
