"""Commands that must not run unasked, by class; each line is one, with escapes as Python writes them."""

READERS = ['ls', 'cat', 'echo', 'pwd', 'head', 'tail', 'wc', 'grep', 'pytest', 'true']
"""Programs that are pre-approved where the default asks."""

TOUCHING = r"""
git status; touch x
git status && touch x
git status || touch x
git status | touch x
git status |& touch x
git status & touch x
git status\ntouch x
git status \\\n&& touch x
git status \\\n;touch x
echo a\\\n;touch x
git status # c\ntouch x
git status #c\\\ntouch x
echo a#b;touch x
echo '#';touch x
echo \\#;touch x
echo a \\;; touch x
echo "a;b";touch x
echo 'a'';touch y';touch x
echo "a\\"";touch x
echo $'a\\'';touch x
(touch x)
{ touch x; }
( ( touch x ) )
! touch x
if touch x; then ls; fi
if ls; then touch x; fi
if ls; then ls; else touch x; fi
if ls; then ls; elif touch x; then ls; fi
while touch x; do break; done
until touch x; do break; done
while ls; do touch x; break; done
for i in a; do touch x; done
for i in $(touch x); do ls; done
for ((i=0;i<1;i++)); do touch x; done
select i in a; do touch x; break; done
case a in a) touch x;; esac
case $(touch x) in a) ls;; esac
case a in $(touch x)) ls;; esac
case a in a) ls;& b) touch x;; esac
f() { touch x; }; f
function f { touch x; }; f
ls() { touch x; }; ls
coproc touch x
coproc { touch x; }
time touch x
time -p touch x
time ! touch x
echo $(touch x)
echo "$(touch x)"
echo `touch x`
echo "`touch x`"
echo `echo \\`touch x\\``
echo "`cat `ls '$(touch x)'` `"
echo `cat `ls '`touch x`'` `
echo "`case `ls ~ '$(touch x)' a` in (a) echo;; esac`"
echo $(echo $(touch x))
echo "$(echo "$(touch x)")"
echo "a$(echo 'b' "$(touch x)")"
echo ${a:-$(touch x)}
echo ${a:=$(touch x)}
echo ${a:+$(touch x)}
echo ${PWD:+$(touch x)}
echo ${a:?$(touch x)}
echo ${a/$(touch x)/b}
echo ${a//b/$(touch x)}
echo ${a:$(touch x)}
echo ${a[$(touch x)]}
echo ${a#$(touch x)}
echo ${a%`touch x`}
echo "${a:-`touch x`}"
a='$(touch x)'; echo ${a@P}
echo ${!a}
echo $((a[$(touch x)]))
echo $(( $(touch x) ))
echo $[a[$(touch x)]]
echo $((touch x) 2>&1)
echo $( (touch x) )
a='b[$(touch x)]'; echo $((a))
((a[$(touch x)]))
(( $(touch x) ))
let 'a[$(touch x)]'
let "a[$(touch x)]=1"
[[ 'a[$(touch x)]' -eq 0 ]]
[[ -v 'a[$(touch x)]' ]]
[[ $(touch x) ]]
[ -v 'a[$(touch x)]' ]
[ "$(touch x)" ]
test -v 'a[$(touch x)]'
test -n "$(touch x)"
printf -v 'a[$(touch x)]' b
declare -i 'a[$(touch x)]=1'
declare a=$(touch x)
export A=$(touch x)
readonly A=$(touch x)
unset 'a[$(touch x)]'
a=$(touch x)
a=`touch x` ls
a=$(touch x) ls
a[$(touch x)]=1
a=(b $(touch x))
a+=$(touch x)
cat <(touch x)
ls > >(touch x)
ls <(echo) >(touch x)
cat <<< $(touch x)
cat <<< "$(touch x)"
cat <<E\n$(touch x)\nE
cat <<E\n`touch x`\nE
cat <<-E\n\t$(touch x)\n\tE
cat <<"E"\nE\ntouch x
cat <<'E'\nE\ntouch x
cat <<E\nE\ntouch x
cat <<E && touch x\na\nE
cat <<E; touch x\na\nE
cat <<E | touch x\na\nE
cat <<E & touch x\na\nE
cat <<\\E\na\nE\ntouch x
cat <<"E"F\na\nEF\ntouch x
cat <<E"F"\na\nEF\ntouch x
cat <<"E F"\na\nE F\ntouch x
cat <<E <<F\na\nE\nb\nF\ntouch x
cat <<E\na\\\nE\n$(touch x)\nE
cat <<-E\na\n\tE\ntouch x
cat <<-'E'\n\ta\n\tE\ntouch x
cat <<E\n a\nE \nE\ntouch x
cat <<E\n\\\\$(touch x)\nE
cat <<E\n${a:-$(touch x)}\nE
cat <<E\n$((a[$(touch x)]))\nE
cat <<E # c\na\nE\ntouch x
cat <<$(touch x)\na\n$(touch x)
cat <<E >x\na\nE
cat <<E\n"\nE\ntouch x #"
echo x > x
echo x >> x
echo x >| x
echo x &> x
echo x &>> x
echo x >& x
echo x >&x
echo x 1>x
echo x 2>x
echo x 3<>x
echo x <> x
echo x {a}>x
> x
>x echo a
: > x
echo x >$'x'
echo x >"x"
echo x >x''y
echo x > $a
echo x > ~/x
echo x >x 2>&1
ls | cat > x
(ls) > x
{ ls; } > x
if ls; then ls; fi > x
for i in a; do ls; done > x
while ls; do ls; done >> x
echo x >/dev/tcp/127.0.0.1/1
cat </dev/tcp/127.0.0.1/1
exec 3>x
exec > x
eval touch x
eval 'touch x'
eval "$(echo touch x)"
eval $a
source x
. x
. <(echo touch x)
source /dev/stdin <<< 'touch x'
trap 'touch x' EXIT
trap 'touch x' DEBUG; ls
trap 'touch x' ERR
PROMPT_COMMAND='touch x' bash -i -c ls
PS4='$(touch x)'; set -x; ls
set -x
shopt -s expand_aliases\nalias ls='touch x'\nls
alias ls='touch x'
enable -f ./x.so ls
hash -p ./x ls; ls
bind -x '"a":touch x'
complete -C 'touch x' a
compgen -W '$(touch x)'
compgen -C 'touch x'
mapfile -C 'touch x' -c 1 a < f
readarray -C 'touch x' a
read 'a[$(touch x)]' <<< 1
read PATH <<< .
export PATH=.
PATH=. ls
PATH=.:$PATH; ls
PATH+=:. ls
IFS=x; ls
BASH_ENV=x bash -c ls
ENV=x sh -c ls
LD_PRELOAD=./x.so ls
LD_LIBRARY_PATH=. ls
LD_AUDIT=./x.so ls
GIT_SSH_COMMAND='touch x' git status
GIT_EXTERNAL_DIFF='touch x' git status
GIT_PAGER='touch x' git status
PAGER='touch x' git status
EDITOR='touch x' git status
PYTHONPATH=. pytest
PYTHONSTARTUP=x pytest
PYTEST_ADDOPTS='-p x' pytest
NODE_OPTIONS='-r ./x' ls
GCONV_PATH=. ls
LESSOPEN='|touch x' ls
http_proxy=a ls
BASH_FUNC_ls%%='() { touch x; }' ls
env PATH=. ls
env -i PATH=. ls
env LD_PRELOAD=./x.so ls
env -S 'touch x'
env -S'touch x'
env --split-string='touch x'
env -u A touch x
env - touch x
env -C / ls
for PATH in .; do ls; done
touch x
./ls
../ls
$PWD/ls
./sub/../git status
/tmp/ls
/usr/bin/../../tmp/ls
/usr/bin//ls/../touch x
~/ls
$a
${a}
$a x
"$a" x
$(echo touch) x
`echo touch` x
t$a x
{touch,x}
{touch,-f,x}
t{ou,}ch x
/*/touch x
t?uch x
[t]ouch x
'touch' x
"touch" x
to""uch x
to''uch x
\\touch x
to\\uch x
$'touch' x
$'\\x74ouch' x
$'\\164ouch' x
$'\\u0074ouch' x
$"touch" x
to\\\nuch x
g\\\nit status; touch x
git\\\nstatus
cd sub && pytest
cd /tmp; git status
pushd /tmp && git status
timeout 5 touch x
timeout -k 1 -s KILL 5 touch x
timeout --foreground 5 touch x
timeout --unknown 5 git status
nice touch x
nice -n 5 touch x
nice -5 touch x
nohup touch x
ionice -c 3 touch x
stdbuf -o0 touch x
setsid touch x
time touch x
command touch x
command -p touch x
builtin eval touch x
exec touch x
exec -a ls touch x
xargs touch
xargs -n1 touch
xargs -I{} touch {}
xargs sh -c 'touch x'
echo x | xargs touch
echo touch x | sh
echo touch x | bash -s
bash x
bash < x
bash -c 'touch x'
bash -ec 'touch x'
bash -c "touch x" ls
bash -c "$a"
bash --rcfile x -c ls
bash -O expand_aliases -c ls
bash -lc ls
bash -ic ls
sh -c 'sh -c "touch x"'
sh -c 'git status; touch x'
zsh -c ls
fish -c ls
sudo touch x
sudo -u root ls
su -c ls
doas ls
chroot / ls
flock x ls
unshare ls
nsenter ls
script -c ls
watch ls
strace ls
ssh host ls
parallel ls ::: a
busybox touch x
toybox touch x
/lib64/ld-linux-x86-64.so.2 /bin/touch x
find . -exec touch x ;
python -c 'open("x","w")'
python3 x.py
perl -e 'x'
awk 'BEGIN{system("touch x")}'
sed -i s/a/b/ x
tee x
dd of=x
cp a x
mv a x
ln -s a x
install a x
make
npm install
pip install x
less a
man ls
vim x
grep x f; touch x
git\u00a0status
git\u2003status
git\u3000status
git\u2028status
git\u0085status
git\x0bstatus
git\x0cstatus
git status\r
git status\r\ntouch x
git status\x00
git status\x00; touch x
git status \x1b[2K
git status \u202e
git\u200bstatus
g\u0456t status
\u202egit status
\ufeffgit status
git status \ud800
ls \u3164
git status;;touch x
git status ; ; touch x
then touch x
do touch x
in touch x
echo 'unterminated
echo "unterminated
echo $(unterminated
echo `unterminated
echo ${unterminated
git status |
git status &&
git status <
git status >
git status \\
cat <<E\nno end
(git status
{ git status
git status)
git status }; touch x
if git status
case a in
[[ a
# only a comment

 
\t
"""
"""What would run or write something behind a pre-approved reader, or cannot be read."""

BLOCKED = r"""
rm x
'rm' x
"rm" x
r'm' x
r"m" x
\\rm x
r\\m x
$'rm' x
$'\\x72m' x
$'\\162m' x
$'\\u0072m' x
/bin/rm x
/usr/bin/rm x
/usr/bin/../bin/rm x
./rm x
RM x
rm
rm -rf /
  rm x
\trm x
A=1 rm x
a=1 b=2 rm x
2>/dev/null rm x
>/dev/null rm x
</dev/null rm x
ls 2>/dev/null; rm x
ls;rm x
ls&&rm x
ls||rm x
ls|rm x
ls&rm x
ls\nrm x
ls \\\n; rm x
(rm x)
{ rm x; }
! rm x
if rm x; then ls; fi
while rm x; do break; done
for i in a; do rm $i; done
case a in a) rm x;; esac
f() { rm x; }; f
function f { rm x; }
echo $(rm x)
echo "$(rm x)"
echo `rm x`
echo ${a:-$(rm x)}
echo $((a[$(rm x)]))
cat <(rm x)
cat <<E\n$(rm x)\nE
cat <<< $(rm x)
a=$(rm x)
a=`rm x` ls
export a=$(rm x)
declare a=$(rm x)
[[ $(rm x) ]]
env rm x
env -i rm x
env -u A rm x
env A=1 rm x
env - rm x
env -- rm x
env -S 'rm x'
timeout 5 rm x
timeout -k 1 5s rm x
timeout --signal=KILL 5 rm x
nice rm x
nice -n 19 rm x
nice -19 rm x
nohup rm x
ionice -c 3 rm x
stdbuf -oL rm x
setsid rm x
setsid -w rm x
time rm x
time -p rm x
command rm x
command -p rm x
command -- rm x
exec rm x
xargs rm
xargs -0 rm -f
xargs -n 1 rm
xargs -I{} rm {}
xargs -I {} rm {}
xargs -r -P 4 rm
xargs -a f rm
find . -exec rm {} ;
find . -exec rm {} +
find . -execdir rm {} ;
find . -ok rm {} ;
find . -name x -exec ls {} \\; -exec rm {} +
sh -c 'rm x'
bash -c "rm x"
bash -ec 'rm x'
bash -c -- 'rm x'
bash -o pipefail -c 'rm x'
/bin/sh -c 'rm x'
dash -c 'ls; rm x'
sh -c 'sh -c "rm x"'
eval rm x
eval 'rm x'
eval "rm" "x"
trap 'rm x' EXIT
sudo rm x
sudo -u root rm x
sudo -n -- rm x
sudo A=1 rm x
doas rm x
chroot / rm x
flock . rm x
taskset 1 rm x
busybox rm x
toybox rm x
watch rm x
coproc rm x
ssh host rm x
ssh host 'rm x'
su -c 'rm x'
/lib64/ld-linux-x86-64.so.2 /bin/rm x
nice nohup timeout 5 env A=1 stdbuf -o0 rm x
builtin command rm x
git push
git push origin
git -c a=b push
git -C . push
git --no-pager push
git --git-dir .git push
git --git-dir=.git push
git -p push
git --work-tree . --git-dir .git push
git 'push'
git p\\ush
git pu""sh
/usr/bin/git push
env git push
command git push
sh -c 'git push'
pip uninstall x
pip3 uninstall x
pip3.11 uninstall x
pip --quiet uninstall x
python -m pip uninstall x
python3 -m pip uninstall x
python3.11 -m pip uninstall x
python -mpip uninstall x
kubectl delete pod x
kubectl --context=a delete pod x
kubectl --context a delete pod x
kubectl -n a delete pod x
docker system prune --force
docker system prune -a --force
docker --context a system prune --force=true
"""
"""What is blocked and must stay so."""

HIDDEN = r"""
$(which rm) x
${A:-rm} x
r${A}m x
a=rm; $a x
a=rm; "$a" x
{rm,x}
/bin/r? x
/bin/r[m] x
/???/rm x
r\\\nm x
$"rm" x
$(echo rm) x
`echo rm` x
$(rev <<< mr) x
IFS=,; c=rm,x; $c
read -r c <<< 'rm x'; $c
echo rm x | sh
echo rm x | bash
echo cm0geA== | base64 -d | sh
. <(echo rm x)
source <(echo rm x)
bash <(echo rm x)
bash < x
bash x.sh
bash <<< 'rm x'
sh <<E\nrm x\nE
eval "$a"
eval $(echo rm x)
python -c 'import os; os.remove("x")'
python <<E\nimport os\nE
echo 'x' | python
python - < x
python3 -Ic 'x'
perl -e 'unlink "x"'
perl -ne 'x' f
ruby -e 'x'
node -e 'x'
node -p 'x'
node --eval 'x'
php -r 'x'
lua -e 'x'
awk 'BEGIN{system("rm x")}'
awk 'BEGIN{"rm x"|getline}'
awk '{print > "x"}' f
awk -f x f
sed 's/a/b/e' f
sed '1e rm x' f
sed 'w x' f
sed -n '1w x' f
sed -f x f
sed --expression='1e rm x' f
vim -c ':!rm x'
vim +'!rm x'
ex -c '!rm x'
nvim --cmd 'x'
less +'!rm x' f
man -P 'rm x' ls
man --pager='rm x' ls
git -c alias.x='!rm x' x
git -c core.pager='rm x' log
git -c core.sshCommand='rm x' fetch
git --exec-path=. status
git --config-env=a=b status
git grep -O'rm x' a
git rebase -x 'rm x' HEAD
git rebase --exec='rm x' HEAD
git bisect run rm x
git submodule foreach 'rm x'
git difftool -x 'rm x'
git ls-remote --upload-pack='rm x' .
git fetch --upload-p='rm x' .
git ls-remote 'ext::rm x'
git clone -u 'rm x' a
git archive --remote=. --exec='rm x' HEAD
git config core.pager 'rm x'
git config --global alias.x '!rm x'
git log --output=x
git diff --ext-diff
git filter-branch --tree-filter 'rm x'
git p$a
a=push; git $a
git $a
git $(echo push)
git {push,origin}
git -C $a push
tar cf a.tar f --checkpoint=1 --checkpoint-action=exec='rm x'
tar xf a.tar --to-command='rm x'
tar cf a.tar -I 'rm x' f
tar --use-compress-program='rm x' -cf a f
zip a f -T -TT 'rm x'
rsync -e 'rm x' a b:c
rsync --rsh='rm x' a b:c
ssh -o ProxyCommand='rm x' a
ssh -oProxyCommand='rm x' a
scp -S ./x a b:c
scp -o ProxyCommand='rm x' a b:c
find . -delete
find . -fprint x
find . -fprintf x a
find . -fls x
sort -o x f
sort --output=x f
sort --out=x f
sort -uo x f
sort --compress-program=./x f
split --filter='rm x' f
uniq f x
shuf -o x f
xxd f x
xxd -r f x
sqlite3 a '.shell rm x'
sqlite3 a '.system rm x'
psql -c '\\! rm x'
curl -o x a
curl -Lo x a
curl -K x
curl --config x
wget -O x a
wget --use-askpass=./x a
make -f x
make --eval='a:;rm x'
make SHELL=./x
npm --script-shell=./x test
pytest -p x
pytest --rootdir=/x
go test -exec ./x
go vet -vettool=./x
cargo --config x build
docker run -v /:/a b
env -i sh x
nohup sh x
timeout 5 sh x
exec -a rm busybox x
xargs -a <(echo x) sh
ls | xargs sh -c 'rm "$@"'
find . -exec sh -c 'rm "$1"' _ {} ;
find . -exec $a {} ;
parallel rm ::: x
parallel 'rm {}' ::: x
alias ls=rm
shopt -s expand_aliases
hash -p /bin/rm ls
enable -n echo
echo rm > s; sh s
echo x > s
at now <<< 'rm x'
crontab <<< '* * * * * rm x'
ed <<< '!rm x'
m4 <<< 'syscmd(rm x)'
socat - EXEC:'rm x'
sudo -s <<< 'rm x'
unshare <<< 'rm x'
cat x | xargs -I{} sh -c '{}'
cat x | xargs -I % sh -c '%'
cat x | xargs -i sh -c '{}'
cat x | xargs --replace=Q sh -c 'Q'
unknownwrapper rm x
flock . -c 'rm x'
unknownwrapper --exec='rm x'
unknownwrapper -c 'rm x'
gdb --args /bin/rm x
cp /bin/rm y
cp `which rm` y
ln -s /bin/rm y
install /bin/rm y
script -qc 'rm x'
expect -c 'spawn rm x'
LD_PRELOAD=./x ls
PATH=. ls
PATH=.; ls
BASH_ENV=x ls
GIT_SSH_COMMAND='rm x' git fetch
"""
"""What may run something blocked, where the default is to run."""

LIFTED = {
    'git log': ['git log --output=x', 'git log --outp=x', 'git log --ext-diff', 'git log $a', 'git log --textconv'],
    'git diff': ['git diff --output=x', 'git diff --output x', 'git diff --ext-diff', 'git -c a=b diff'],
    'git grep': ['git grep -O', 'git grep -Oless a', 'git grep --open-files-in-pager=x a', 'git grep --op=x a'],
    'git remote -v': ['git remote -v add a b', 'git remote -v update', 'git remote -v set-url a b'],
    'git config --get': ['git config --get --add a b', 'git config --get --unset a', 'git config --get -e'],
    'git fetch': ['git fetch --upload-pack=x', 'git fetch ext::x', 'git fetch "ext::sh -c x"'],
    'git archive': ['git archive -o x HEAD', 'git archive --output=x HEAD', 'git archive --exec=x --remote=. HEAD'],
    'git': ['git -c a=b status', 'git -C /tmp status', 'git --git-dir=x status', 'git --exec-path=x status'],
    'find': ['find . -delete', 'find . -fprint x', 'find . -exec touch x ;', 'find . -ok touch x ;', 'find $a -name x'],
    'sort': ['sort -o x', 'sort -ox', 'sort -uo x', 'sort --output=x', 'sort --ou x', 'sort --compress-prog=x',
        'sort *',
             'sort --random-source -- -o x f', 'sort -t -- -o x f'],
    'uniq': ['uniq a b', 'uniq -c a b', 'uniq a $b', 'uniq -- a -b', 'uniq -f 1 -- 2 b', 'uniq -- -f 1'],
    'xxd': ['xxd a b', 'xxd -r a b'],
    'sed -n': ["sed -n 'w x' f", "sed -n '1e touch x' f", "sed -n 's/a/b/w x' f", "sed -n 's/a/b/e' f", 'sed -ni p f',
               'sed -n -i p f', 'sed -n -f x f', 'sed -n --in-place p f', "sed -n -e p -e 'w x' f", 'sed -n $a f',
               "sed -n '/a/{w x\n}' f", "sed -n 's/[/]/w x/w x' f", 'sed -n -s p f -i', "sed -n 'R x' f",
               "sed -n 'r x' f"],
    'awk': ["awk 'BEGIN{system(\"x\")}'", "awk '{print > \"x\"}' f", "awk '{print | \"x\"}' f", 'awk -f x f',
            'awk -i inplace 1 f', 'awk "$a" f', "awk 'BEGIN{\"x\" | getline}'", 'awk -E x f', "awk '@load \"x\"'"],
    'tar': ['tar cf a --checkpoint-action=exec=x f', 'tar xf a --to-command=x', 'tar -I x -cf a f', 'tar cIf x a f',
            'tar --use-comp=x -cf a f', 'tar -cf a -F x f', 'tar --rsh-command=x -cf h:a f', 'tar "c$x" f'],
    'curl': ['curl -o x a', 'curl -sSLo x a', 'curl -O a', 'curl --output x a', 'curl -K x', 'curl --con x',
        'curl -T x a',
             'curl -D x a', 'curl -c x a', 'curl --trace x a', 'curl $a'],
    'wget': ['wget -O x a', 'wget --execute=a=b c', 'wget -i x', 'wget -P x a'],
    'rsync': ['rsync -e x a b', 'rsync --rsh=x a b', 'rsync --rsync-path=x a b', 'rsync -ave x a b'],
    'zip': ['zip a b -T -TT x', 'zip -T --unzip-command=x a b'],
    'pytest': ['pytest -p x', 'pytest -c x', 'pytest --rootdir=x', 'pytest -o a=b', 'pytest --basetemp=x',
               'pytest --junitxml=x', 'pytest --pastebin=all', 'pytest $a', 'pytest @x',
               'pytest -- @x', 'pytest -- $x', 'pytest -p no:a -p b', 'pytest --cov-report=xml:x'],
    'mypy': ['mypy --config-file=x a', 'mypy --install-types a', 'mypy --html-report x a', 'mypy -c x'],
    'tree': ['tree -o x', 'tree -Lo 2 x', 'tree -R -L 1 -H .', 'tree -Po a x'],
    'ptx': ['ptx -G a b', 'ptx a b'],
    'git branch': ['git branch -D a', 'git branch -vD a', 'git branch --del a', 'git branch -m a b',
        'git branch -f a b', 'git branch -u a',
                   'git branch --set-upstream-to=a', 'git branch --unset-upstream', 'git branch --edit-description'],
    'git tag': ['git tag -d a', 'git tag -f a', 'git tag -s a', 'git tag -v a', 'git tag --force a'],
    'git push': ['git push -f', 'git push --force-with-lease', 'git push --delete a b', 'git push --mirror'],
    'git reset': ['git reset --hard', 'git reset --har'],
    'git checkout': ['git checkout -f', 'git checkout -B a'],
    'git switch': ['git switch -f a', 'git switch -C a', 'git switch --disc a'],
    'git show': ["git show --format='%G?'", "git show -s --pretty='%h %GS'"],
    'git for-each-ref': ["git for-each-ref --format='%(signature:key)'"],
    'git ls-remote': ['git ls-remote "e$x"', 'git ls-remote e*'],
    'tee': ['tee x', 'tee -a ~/.bashrc', 'tee /dev/null x', 'tee "a$x"', 'tee .git/hooks/pre-commit', 'tee -- -a',
        'tee -a -- -b'],
    'make': ["make 'X!=touch x'", "make 'X:=$(shell touch x)'", "make '.X!=x'", "make -- '-X!=x'", 'make "a$x"',
        'make a*', 'make -f x', 'make -C x', 'make SHELL=x', 'make --eval=x', 'make a A=b'],
    'python': ['python -c x', 'python -m x', 'python', 'python -', 'python -i x', 'python -Bc x', 'python -u'],
    'node': ['node -e x', 'node --eval=x', 'node -r x y', 'node', 'node --require=x y'],
    'man': ['man -P x ls', 'man --pager=x ls', 'man -H ls'],
    'rg': ['rg --pre x a', 'rg --pre=x a', 'rg -z a', 'rg --hostname-bin=x a'],
    'fd': ['fd -x touch', 'fd -X touch', 'fd --exec touch'],
    'go': ['go test -exec x', 'go vet -vettool=x', 'go build -toolexec=x', 'go run x', 'go test -C x'],
    'cargo': ['cargo --config x test'],
    'uv run': ['uv run touch x', 'uv run python -c x'],
    'npx': ['npx touch x', 'npx -c x'],
    'xargs': ['xargs touch', 'xargs -n1 touch x', 'xargs sh -c x'],
    'timeout': ['timeout 5 touch x'],
    'env': ['env touch x', 'env A=b ls'],
    'sudo': ['sudo touch x', 'sudo -u a touch x'],
    'bash': ['bash', 'bash x', "bash -c 'touch x'", 'bash -s'],
    'let': ["let 'a[$(touch x)]'", 'let a=1'],
    'read': ['read PATH', 'read'],
    'test': ["test -v 'a[$(touch x)]'", 'test $a'],
    '[': ["[ -v 'a[$(touch x)]' ]", '[ $a ]'],
    '[[': ["[[ 'a[$(touch x)]' -eq 0 ]]", "[[ -v 'a[0]' ]]", '[[ a -lt b ]]'],
    'printf': ["printf -v 'a[$(touch x)]' b", 'printf $a'],
    'date': ['date -s 1', 'date --set=1', 'date 01010101', 'date -us x', 'date -d x -s y', 'date -d x 0101',
        'date --date x 0101', 'date -f x', 'date -ds 0101'],
    'dd': ['dd of=x', 'dd "o$x"'],
    'terraform fmt -check': ['terraform fmt -check -chdir=x', 'terraform fmt -check -write=true'],
    'ssh build': ['ssh build -oProxyCommand=x', 'ssh build touch x'],
    'sqlite3': ["sqlite3 a '.shell x'", "sqlite3 a '.output x'", "sqlite3 a -cmd '.shell x'", "sqlite3 a ' .read x'",
        'sqlite3 a "sel$x"'],
}  # fmt: skip
"""By pre-approved pattern: what the pattern must not let through."""


def lines(text):
    """The commands of a block above, with their escapes undone."""
    undone = [line.encode('latin-1', 'backslashreplace').decode('unicode_escape') for line in text.splitlines()[1:]]
    return [line.encode('utf-16', 'surrogatepass').decode('utf-16', 'surrogatepass') for line in undone]
