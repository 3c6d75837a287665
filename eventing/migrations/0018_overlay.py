"""The overlay: this domain's membership, founders, the directory, sponsorships and links."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('eventing', '0017_renew_on_use'),
    ]

    operations = [
        migrations.CreateModel(
            name='OverlayFounder',
            fields=[
                ('name', models.CharField(max_length=253, primary_key=True, serialize=False)),
                ('fingerprint', models.CharField(max_length=64)),
                ('learned_from', models.CharField(max_length=253)),
                ('added_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='DirectoryDomain',
            fields=[
                ('name', models.CharField(max_length=253, primary_key=True, serialize=False)),
                ('fingerprint', models.CharField(max_length=64)),
                ('record', models.BinaryField()),
                ('version', models.BigIntegerField()),
                ('url', models.CharField(blank=True, max_length=255)),
                ('zone', models.CharField(blank=True, max_length=32)),
                ('capacity', models.SmallIntegerField()),
                ('sponsor', models.CharField(blank=True, max_length=253)),
                ('issued_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('held', models.BooleanField(default=True)),
                ('admitted_at', models.DateTimeField()),
                ('convicted_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['zone', 'name'], name='directory_by_zone'), models.Index(fields=['held', 'expires_at'], name='directory_by_end'), models.Index(fields=['sponsor', 'name'], name='directory_by_sponsor')],
            },
        ),
        migrations.CreateModel(
            name='GrantedSponsorship',
            fields=[
                ('newcomer', models.CharField(max_length=253, primary_key=True, serialize=False)),
                ('key', models.CharField(max_length=64)),
                ('day', models.IntegerField()),
                ('number', models.IntegerField()),
                ('signature', models.BinaryField()),
                ('granted_at', models.DateTimeField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('day', 'number'), name='sponsorship_number_is_used_once')],
            },
        ),
        migrations.CreateModel(
            name='OverlayLink',
            fields=[
                ('peer', models.CharField(max_length=253, primary_key=True, serialize=False)),
                ('up', models.BooleanField()),
                ('chosen', models.BooleanField()),
                ('anchor', models.BooleanField()),
                ('reason', models.CharField(max_length=32)),
                ('since', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['up', 'since'], name='overlay_link_by_state')],
            },
        ),
        migrations.CreateModel(
            name='OverlayMembership',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('sponsor', models.CharField(blank=True, default='', max_length=253)),
                ('grant', models.BinaryField()),
                ('version', models.BigIntegerField(default=0)),
                ('known', models.JSONField(default=list)),
                ('joined_at', models.DateTimeField()),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='overlay_membership_is_one')],
            },
        ),
    ]
